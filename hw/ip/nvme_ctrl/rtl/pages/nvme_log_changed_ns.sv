// SPDX-License-Identifier: Apache-2.0

// Changed Namespace List (NVMe 1.4, 5.14.1.4): the namespaces whose Identify data have changed
// since the host has read the list, in ascending order.
//
// `snapshot_i` fixes the content of a transfer. `clear_i` removes the content of the snapshot from
// the list, and keeps later changes.
`include "ns_assert.svh"

module nvme_log_changed_ns #(
  /// Namespaces, 1 to 16.
  parameter int unsigned NumNamespaces = 1
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  /// Controller reset: empty the list.
  input  logic                     reset_i,
  /// Namespaces that change in this cycle, namespace 1 first.
  input  logic [NumNamespaces-1:0] changed_i,
  /// The list is not empty.
  output logic                     any_o,
  /// A transfer begins.
  input  logic                     snapshot_i,
  /// The host has received it, and does not retain the event.
  input  logic                     clear_i,

  /// Read a beat.
  input  logic                     re_i,
  /// Beat, of the 64 of a page.
  input  logic [5:0]               beat_i,
  /// The beat, one cycle later.
  output logic [511:0]             data_o
);

  logic [NumNamespaces-1:0] changed_q, shown_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      changed_q <= '0;
      shown_q   <= '0;
    end else begin
      changed_q <= reset_i ? '0 : (changed_q & ~(clear_i ? shown_q : '0)) | changed_i;
      if (snapshot_i) shown_q <= changed_q;
      // A namespace that changes again during the transfer stays.
      else
        shown_q <= shown_q & ~changed_i;
    end
  end

  // The list fits into one beat.
  function automatic logic [511:0] list(logic [NumNamespaces-1:0] changed);
    int unsigned at = 0;
    list = '0;
    for (int unsigned n = 0; n < NumNamespaces; n++) begin
      if (changed[n]) begin
        list[32*at+:32] = 32'(n + 1);
        at++;
      end
    end
  endfunction

  always_ff @(posedge clk_i) if (re_i) data_o <= (beat_i == '0) ? list(shown_q) : '0;

  assign any_o = changed_q != '0;

  if (NumNamespaces < 1 || NumNamespaces > 16) begin : gen_bad_namespaces
    $error("nvme_log_changed_ns: NumNamespaces must be 1 to 16");
  end

  `NS_ASSERT(clear_after_snapshot, !clear_i || !snapshot_i)

endmodule
