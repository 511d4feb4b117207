// SPDX-License-Identifier: Apache-2.0

//! Instructions that flush, fence and store past the cache, in programs that are assembled here.

use std::path::Path;
use std::process::Command;

use pmdk::{find, Effect, InstructionList};

/// A function as compilers emit it: with unwind information, and a size.
fn function(name: &str, body: &str) -> String {
    format!(
        ".globl {name}\n.type {name}, \
         @function\n{name}:\n.cfi_startproc\n{body}\nret\n.cfi_endproc\n.size {name}, .-{name}\n"
    )
}

/// Assembles a shared library; `None` without an assembler.
fn assembled(name: &str, source: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let (text, library) = (folder.join("code.s"), folder.join("code.so"));
    let source = format!(".text\n{source}\n.section .note.GNU-stack,\"\",@progbits\n");
    std::fs::write(&text, source).unwrap();
    let status = Command::new("cc")
        .args(["-shared", "-nostdlib", "-o"])
        .args([&library, &text])
        .status();
    assert!(status.expect("cc can be run").success());
    std::fs::read(library).unwrap()
}

fn counts(found: &InstructionList) -> [usize; 5] {
    use Effect::{Fence, Flush, Locked, OrderedFlush, Stream};
    [Flush, OrderedFlush, Fence, Locked, Stream].map(|effect| found.count(effect))
}

#[test]
fn instructions_in_all_forms_are_found() {
    let body = "
        clwb (%rax); clwb 8(%r13); clwb 0x1000(%rsp,%r12,8); clwb x(%rip); clwb (%edi)
        clwb %fs:16(%rbx)
        clflushopt (%r8); .byte 0x66; clflush (%rax); .byte 0x66; xsaveopt (%rcx)
        clflush (%rax); clflush -64(%rbp,%rsi,2)
        sfence; mfence
        lock addl $1, (%rdi); lock cmpxchg16b (%rsi); xchg %rax, (%rbx); xchg %eax, x(%rip)
        lock incl %fs:0
        movnti %eax, (%rdi); movnti %r9, 8(%rdi); movntq %mm0, (%rdi); movntdq %xmm9, (%rdi)
        movntps %xmm1, (%rdi)
        movntpd %xmm1, (%rdi); vmovntdq %ymm3, (%rdi); vmovntps %ymm3, x(%rip)
        vmovntpd %xmm3, (%rdi)
        vmovntdq %zmm17, (%rdi); vmovntps %zmm1, 64(%rdi); vmovntdq %xmm20, (%rdi)
        maskmovdqu %xmm1, %xmm2
        vmaskmovdqu %xmm1, %xmm2; maskmovq %mm0, %mm1; movdiri %rax, (%rdi); movdir64b (%rdi), \
        %rax; clzero";
    let data = "\n.data\nx: .quad 0\n.text\n";
    let found = find(&assembled("forms", &(function("forms", body) + data))).unwrap();
    assert_eq!(counts(&found), [9, 2, 2, 5, 18]);
    assert_eq!(found.left_alone, 0);
    assert!(found.places.is_sorted_by_key(|place| place.address));
    assert_eq!(found.to_bytes().len(), 16 + 40 * found.places.len());
}

#[test]
fn instructions_without_an_effect_are_ignored() {
    let body = "
        lfence; prefetchw (%rax); movntdqa (%rdi), %xmm0; xchg %rax, %rbx; nop; fxsave (%rax)
        ldmxcsr (%rax)
        prefetchnta (%rax); mov $0xf8ae0f, %eax; movabs $0x38ae0f6638ae0f66, %rax; xsave (%rax); \
        addl $1, (%rdi)";
    let found = find(&assembled("others", &function("others", body))).unwrap();
    assert_eq!((counts(&found), found.left_alone), ([0; 5], 0));
}

#[test]
fn locked_instructions_are_found_near_flushes() {
    let locked = function("locked", "lock addl $1, (%rdi); sfence");
    assert_eq!(
        counts(&find(&assembled("locked", &locked)).unwrap()),
        [0, 0, 1, 0, 0]
    );
    let both = locked + &function("flushes", "clwb (%rdi)");
    assert_eq!(
        counts(&find(&assembled("both", &both)).unwrap()),
        [1, 0, 1, 1, 0]
    );
}

/// Bytes that may be data, or another instruction, are left alone.
#[test]
fn ambiguous_code_is_left_alone() {
    // Without unwind information and a size the bytes are not known to be code.
    let bare = "bare:\nclwb (%rax)\nclflush (%rax)\nret\n".to_string();
    let found = find(&assembled(
        "bare",
        &(bare.clone() + &function("known", "nop")),
    ))
    .unwrap();
    assert_eq!((counts(&found), found.left_alone), ([0; 5], 2));
    // A function with an invalid instruction.
    let data = function("data", "clwb (%rax); sfence; jmp 1f; .byte 6, 7, 6\n1:");
    let found = find(&assembled(
        "data",
        &(data + &function("clean", "clwb (%rax)")),
    ))
    .unwrap();
    assert_eq!((counts(&found), found.left_alone), ([1, 0, 0, 0, 0], 2));
    // A branch to the byte after the prefix: `clflushopt`, or `clflush`.
    let split = function(
        "split",
        "test %eax, %eax; jz 1f; .byte 0x66\n1: clflush (%rax); clwb (%rbx)",
    );
    let found = find(&assembled("split", &split)).unwrap();
    assert_eq!((counts(&found), found.left_alone), ([1, 0, 0, 0, 0], 1));
    // A size is enough, without unwind information.
    let sized = "sized:\nclwb (%rax)\nret\n.type sized, @function\n.size sized, .-sized\n";
    assert_eq!(
        counts(&find(&assembled("sized", sized)).unwrap()),
        [1, 0, 0, 0, 0]
    );
}

/// Much data between functions, which compilers do not emit: neither found nor slow.
#[test]
fn data_in_the_text_section_is_no_code() {
    let table = format!(
        "table:\n{}",
        ".byte 0x0f, 0x0b, 0x06, 0xff, 0x66\n".repeat(200_000)
    );
    let source = function("first", "clwb (%rax)") + &table + &function("last", "sfence");
    let found = find(&assembled("table", &source)).unwrap();
    assert_eq!((counts(&found), found.left_alone), ([1, 0, 1, 0, 0], 0));
}

#[test]
fn files_without_code_have_no_instructions() {
    for data in [&b""[..], b"#!/bin/sh\n", b"\x7fELF\x01\x01", &[0x7F; 4096]] {
        assert_eq!(find(data).unwrap(), InstructionList::default());
    }
}

/// Any file gives a result, or an error.
#[test]
fn broken_files_are_reported() {
    let whole = assembled("broken", &function("broken", "clwb (%rax)"));
    assert!(find(&whole[..200])
        .unwrap_err()
        .to_string()
        .contains("broken"));
    let mut state = 1u64;
    let mut draw = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) as usize
    };
    for _ in 0..3000 {
        let mut data = whole.clone();
        for _ in 0..1 + draw() % 4 {
            let at = if draw() % 2 == 0 {
                draw() % 512
            } else {
                draw() % data.len()
            };
            data[at] = draw() as u8;
        }
        data.truncate(data.len() - draw() % 8 * (draw() % 100));
        // No more instructions than code bytes.
        if let Ok(found) = find(&data) {
            assert!(found.places.len() <= data.len());
        }
    }
}
