// Types that the front end and the data path of nvme_ctrl share, and the constants of NVM Express 1.4 that they use.
package nvme_pkg;

  /// Widest command slot number; a controller has `NumSlots` <= 2**SlotWidth of them.
  parameter int unsigned SlotWidth = 8;

  /// Bytes of one data command: 512 B to 1 MiB (MDTS 8 at 4 KiB pages).
  parameter int unsigned BytesWidth = 21;

  /// One command's data transfer, from the front end to the data path.
  typedef struct packed {
    logic [SlotWidth-1:0]  slot;      // returned in data_done_t
    logic                  write;     // 1: host memory -> device, 0: device -> host memory
    logic [BytesWidth-1:0] bytes;     // a multiple of 4, at least 4
    logic [63:0]           mem_addr;  // media byte address, a multiple of 4; bit 63: the admin buffer
    logic [63:0]           prp1;      // dword-aligned (NVMe 1.4, 4.3)
    logic [63:0]           prp2;
  } data_cmd_t;

  /// How a data transfer ended.
  typedef enum logic [1:0] {
    DataOk        = 2'd0,
    DataBadPrp    = 2'd1,  // PRP Offset Invalid (13h)
    DataHostError = 2'd2,  // host answered with an error: Data Transfer Error (04h)
    DataMemError  = 2'd3   // device memory answered with an error: Internal Error (06h)
  } data_status_e;

  typedef struct packed {
    logic [SlotWidth-1:0] slot;
    data_status_e         status;
  } data_done_t;

endpackage
