// SPDX-License-Identifier: Apache-2.0

//! Parses orders, such as `a, b desc nulls last, "a, name" asc`.

use crate::{Error, Result};

/// One column of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderBy {
    /// The column's name.
    pub column: String,
    /// True if the greatest value comes first.
    pub descending: bool,
    /// True if nulls come first, false if they come last.
    pub nulls_first: bool,
}

/// A token of the text.
#[derive(Debug, PartialEq, Eq)]
enum Token {
    /// An unquoted word. It ends at a space or a comma.
    Word(String),
    /// A quoted name. Two quotes within it are one.
    Quoted(String),
    Comma,
}

fn tokens(text: &str) -> Result<Vec<Token>> {
    let mut out = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            ',' => out.push(Token::Comma),
            '"' => {
                let mut name = String::new();
                loop {
                    match rest.next() {
                        Some('"') if rest.next_if_eq(&'"').is_none() => break,
                        Some(c) => name.push(c),
                        None => {
                            return Err(Error::new(format!("by = {text:?}: a \" is not closed")))
                        }
                    }
                }
                out.push(Token::Quoted(name));
            }
            c if c.is_whitespace() => {}
            c => {
                let mut word = String::from(c);
                while let Some(c) = rest.next_if(|&c| c != ',' && !c.is_whitespace()) {
                    word.push(c);
                }
                out.push(Token::Word(word));
            }
        }
    }
    Ok(out)
}

/// Parses an order: names of columns, each followed by `asc` or `desc` and by `nulls first` or
/// `nulls last`. Both are optional. As in SQL, the default is ascending, with nulls last;
/// descending orders have nulls first.
pub fn parse_order(text: &str) -> Result<Vec<OrderBy>> {
    let tokens = tokens(text)?;
    tokens
        .split(|token| *token == Token::Comma)
        .map(|item| parse_column(item, text))
        .collect()
}

/// Parses names of columns, separated by commas. The list may be empty.
pub fn parse_columns(text: &str) -> Result<Vec<String>> {
    let tokens = tokens(text).map_err(|_| invalid_columns(text))?;
    if tokens.is_empty() {
        return Ok(Vec::new());
    }
    let named = |item: &[Token]| match item {
        [Token::Word(name) | Token::Quoted(name)] => Ok(name.clone()),
        _ => Err(invalid_columns(text)),
    };
    tokens
        .split(|token| *token == Token::Comma)
        .map(named)
        .collect()
}

fn invalid_columns(text: &str) -> Error {
    Error::new(format!(
        "keys = {text:?}: allowed are names of columns with commas between them, in quotes if \
            they have spaces or commas"
    ))
}

fn parse_column(item: &[Token], text: &str) -> Result<OrderBy> {
    let mut item = item.iter();
    let column = match item.next() {
        Some(Token::Word(name) | Token::Quoted(name)) => name.clone(),
        _ => {
            return Err(Error::new(format!(
                "by = {text:?}: a column's name is missing"
            )))
        }
    };
    let words: Vec<String> = item
        .map(|token| match token {
            Token::Word(word) => word.to_ascii_lowercase(),
            Token::Quoted(name) => format!("\"{name}\""),
            Token::Comma => ",".into(),
        })
        .collect();
    let mut words = words.iter().map(String::as_str).peekable();
    let descending = match words.next_if(|&word| word == "asc" || word == "desc") {
        Some(word) => word == "desc",
        None => false,
    };
    let nulls_first = match (words.next(), words.next(), words.next()) {
        (None, ..) => descending,
        (Some("nulls"), Some("first"), None) => true,
        (Some("nulls"), Some("last"), None) => false,
        (Some(_), ..) => {
            return Err(Error::new(format!(
                "by = {text:?}: after a column may follow asc or desc, then nulls first or nulls \
                    last, then a comma; a name with a space needs double quotes: \"a name\" desc"
            )))
        }
    };
    Ok(OrderBy {
        column,
        descending,
        nulls_first,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(column: &str, descending: bool, nulls_first: bool) -> OrderBy {
        OrderBy {
            column: column.into(),
            descending,
            nulls_first,
        }
    }

    #[test]
    fn order_is_parsed() {
        let found =
            parse_order("a, b DESC,c desc nulls last , \"d, \"\"e\" asc Nulls First").unwrap();
        let wanted = [
            by("a", false, false),
            by("b", true, true),
            by("c", true, false),
            by("d, \"e", false, true),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn order_columns_are_parsed() {
        assert_eq!(parse_columns("a,\"b, c\" , d").unwrap(), ["a", "b, c", "d"]);
        assert!(parse_columns(" ").unwrap().is_empty());
        for text in ["a b", "a,", ",", "\"a", "a desc"] {
            let error = parse_columns(text).unwrap_err().to_string();
            assert!(error.starts_with("keys = "), "{error}");
        }
    }

    #[test]
    fn order_rejects_invalid_text() {
        for text in [
            "",
            " ",
            ",",
            "a,",
            ",a",
            "a b",
            "a nulls",
            "a desc desc",
            "\"a",
            "a nulls first x",
            "a nulls last desc",
            "a \"desc\"",
        ] {
            let error = parse_order(text).unwrap_err().to_string();
            assert!(error.starts_with("by = "), "{error}");
        }
    }
}
