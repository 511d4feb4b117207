// SPDX-License-Identifier: Apache-2.0

//! TPC-C (revision 5.11): the transactions new-order and payment, over its nine tables. Rows have
//! the sizes that clause 4.2 states. Customers are chosen by number only.

use pm::{Error, Result};
use sim::Random;

use super::{random_bytes, read_number, skewed, Logic};
use crate::Store;

/// One warehouse with ten districts.
#[derive(Clone, Copy, Debug)]
pub struct Tpcc {
    /// Customers of each district: 3000 in the benchmark.
    pub customers: u64,
    /// Items of the warehouse: 100,000 in the benchmark.
    pub items: u64,
}

const WAREHOUSE: usize = 0;
const DISTRICT: usize = 1;
const CUSTOMER: usize = 2;
const HISTORY: usize = 3;
const NEW_ORDER: usize = 4;
const ORDER: usize = 5;
const ORDER_LINE: usize = 6;
const ITEM: usize = 7;
const STOCK: usize = 8;
const TABLES: usize = 9;

/// Bytes of the rows.
const BYTES: [usize; TABLES] = [89, 95, 655, 46, 8, 24, 54, 82, 306];
const DISTRICTS: u64 = 10;
/// Offsets of fields of 8 bytes, the same in all rows that have them: sums of money in cents,
/// counts, the next order's number.
const YTD: usize = 0;
const NEXT_ORDER: usize = 8;
/// Fields of a customer.
const BALANCE: usize = 0;
const YTD_PAYMENT: usize = 8;
const PAYMENTS: usize = 16;
const BAD_CREDIT: usize = 24;
const DATA: usize = 155;
/// Fields of an item.
const PRICE: usize = 0;
/// Fields of stock.
const QUANTITY: usize = 0;
const STOCK_YTD: usize = 8;
const ORDERS: usize = 16;

/// A row of a table: numbers, then random bytes.
fn row(table: usize, numbers: &[u64], random: &mut Random) -> Vec<u8> {
    let mut row: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    row.truncate(BYTES[table]);
    let rest = BYTES[table] - row.len();
    row.extend(random_bytes(random, rest));
    row
}

fn require_row(row: Option<Vec<u8>>, what: &str) -> Result<Vec<u8>> {
    row.ok_or_else(|| Error::Corrupt(format!("the tables are damaged: a {what} is missing")))
}

impl Tpcc {
    fn customer(&self, district: u64, number: u64) -> u64 {
        district * self.customers + number
    }

    fn new_order(&self, random: &mut Random, store: &mut dyn Store) -> Result<bool> {
        let district = random.below(DISTRICTS);
        let number_of = skewed(random, 1023.min(self.customers / 2), self.customers);
        let customer = self.customer(district, number_of);
        let lines = 5 + random.below(11);
        // Clause 2.4.1.4: one order in a hundred names an unknown item, and is rolled back at its
        // end.
        let unknown = random.below(100) == 0;
        require_row(store.get(WAREHOUSE, 0)?, "warehouse")?;
        let own = require_row(store.get(DISTRICT, district)?, "district")?;
        let order = read_number(&own, NEXT_ORDER);
        let next = (order + 1).to_le_bytes();
        store.update(DISTRICT, district, NEXT_ORDER, &next)?;
        require_row(store.get(CUSTOMER, customer)?, "customer")?;
        let key = district << 32 | order;
        let new = row(ORDER, &[customer, lines, order], random);
        store.put(ORDER, key, &new)?;
        store.put(NEW_ORDER, key, &order.to_le_bytes())?;
        for line in 0..lines {
            if unknown && line + 1 == lines {
                return Ok(false);
            }
            let item = skewed(random, 8191.min(self.items / 2), self.items);
            let count = 1 + random.below(10);
            let price = read_number(&require_row(store.get(ITEM, item)?, "item")?, PRICE);
            let stock = require_row(store.get(STOCK, item)?, "stock")?;
            let quantity = match read_number(&stock, QUANTITY) {
                left if left >= count + 10 => left - count,
                left => left + 91 - count,
            };
            let sums = [
                quantity,
                read_number(&stock, STOCK_YTD) + count,
                read_number(&stock, ORDERS) + 1,
            ];
            let sums: Vec<u8> = sums.into_iter().flat_map(u64::to_le_bytes).collect();
            store.update(STOCK, item, QUANTITY, &sums)?;
            let new = row(ORDER_LINE, &[item, count, count * price], random);
            store.put(ORDER_LINE, key << 4 | line, &new)?;
        }
        Ok(true)
    }

    fn payment(&self, random: &mut Random, store: &mut dyn Store) -> Result<bool> {
        let district = random.below(DISTRICTS);
        let number_of = skewed(random, 1023.min(self.customers / 2), self.customers);
        let customer = self.customer(district, number_of);
        let amount = 100 + random.below(499_901);
        for (table, key) in [(WAREHOUSE, 0), (DISTRICT, district)] {
            let ytd = read_number(&require_row(store.get(table, key)?, "sum")?, YTD);
            let sum = (ytd + amount).to_le_bytes();
            store.update(table, key, YTD, &sum)?;
        }
        let own = require_row(store.get(CUSTOMER, customer)?, "customer")?;
        let payments = read_number(&own, PAYMENTS);
        let sums = [
            read_number(&own, BALANCE).wrapping_sub(amount),
            read_number(&own, YTD_PAYMENT) + amount,
            payments + 1,
        ];
        let sums: Vec<u8> = sums.into_iter().flat_map(u64::to_le_bytes).collect();
        store.update(CUSTOMER, customer, BALANCE, &sums)?;
        if own[BAD_CREDIT] == 1 {
            // The data of the payment are inserted in front of the older data.
            let mut data = Vec::new();
            for n in [customer, district, amount] {
                data.extend(n.to_le_bytes());
            }
            data.extend_from_slice(&own[DATA..]);
            data.truncate(own.len() - DATA);
            store.update(CUSTOMER, customer, DATA, &data)?;
        }
        let new = row(HISTORY, &[customer, amount], random);
        store.put(HISTORY, customer << 32 | payments, &new)?;
        Ok(true)
    }
}

impl Logic for Tpcc {
    fn tables(&self) -> usize {
        TABLES
    }

    fn population_steps(&self) -> u64 {
        1 + DISTRICTS * self.customers + self.items
    }

    fn populate(&self, step: u64, random: &mut Random, store: &mut dyn Store) -> Result<()> {
        if step == 0 {
            store.put(WAREHOUSE, 0, &row(WAREHOUSE, &[30_000_000], random))?;
            for district in 0..DISTRICTS {
                let new = row(DISTRICT, &[3_000_000, 1], random);
                store.put(DISTRICT, district, &new)?;
            }
        } else if step <= DISTRICTS * self.customers {
            let bad = u64::from(random.below(10) == 0);
            let new = row(CUSTOMER, &[0, 1000, 0, bad], random);
            store.put(CUSTOMER, step - 1, &new)?;
        } else {
            let item = step - 1 - DISTRICTS * self.customers;
            let price = 100 + random.below(9901);
            store.put(ITEM, item, &row(ITEM, &[price], random))?;
            let new = row(STOCK, &[10 + random.below(91), 0, 0], random);
            store.put(STOCK, item, &new)?;
        }
        Ok(())
    }

    fn transaction(&self, random: &mut Random, store: &mut dyn Store) -> Result<bool> {
        // Weights of the two transactions: 45 and 43 percent.
        match random.below(88) {
            0..45 => self.new_order(random, store),
            _ => self.payment(random, store),
        }
    }
}
