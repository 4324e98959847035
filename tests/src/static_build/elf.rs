//! The parts of an ELF file that tell whether it runs by itself: program headers and the dynamic section.
//!
//! # References
//! System V ABI, chapters "Program Header" and "Dynamic Linking"; 64-bit little-endian files only.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};

const PT_DYNAMIC: u64 = 2;
const PT_INTERP: u64 = 3;
const DT_NEEDED: u64 = 1;

/// The processor that a program is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// `EM_X86_64`.
    X86_64,
    /// `EM_AARCH64`.
    Aarch64,
    /// Another one, by its number.
    Other(u16),
}

/// What is said in the headers of an executable.
#[derive(Clone, Copy, Debug)]
pub struct Elf {
    /// What it runs on.
    pub machine: Machine,
    /// Whether it names a program that has to load it (`PT_INTERP`).
    pub has_interpreter: bool,
    /// Shared libraries that it names (`DT_NEEDED`).
    pub libraries: usize,
    /// Size of the file.
    pub bytes: usize,
}

impl Elf {
    /// Reads the headers of the file at `path`.
    ///
    /// # Errors
    /// When the file cannot be read, or is not a 64-bit little-endian ELF file whose headers lie inside it.
    pub fn read(path: &Path) -> Result<Self> {
        let file = fs::read(path).with_context(|| format!("read {}", path.display()))?;
        Self::parse(&file).with_context(|| format!("read the ELF headers of {}", path.display()))
    }

    fn parse(file: &[u8]) -> Result<Self> {
        ensure!(file.starts_with(b"\x7fELF\x02\x01"), "no 64-bit little-endian ELF file");
        let machine = match number(file, 18, 2)? {
            62 => Machine::X86_64,
            183 => Machine::Aarch64,
            other => Machine::Other(u16::try_from(other)?),
        };
        let (first, size, count) = (number(file, 32, 8)?, number(file, 54, 2)?, number(file, 56, 2)?);
        let mut elf = Self { machine, has_interpreter: false, libraries: 0, bytes: file.len() };
        for header in 0..count {
            let at = usize::try_from(first + header * size)?;
            match number(file, at, 4)? {
                PT_INTERP => elf.has_interpreter = true,
                PT_DYNAMIC => {
                    let (offset, bytes) = (number(file, at + 8, 8)?, number(file, at + 32, 8)?);
                    elf.libraries += libraries(file, usize::try_from(offset)?, usize::try_from(bytes)?)?;
                }
                _ => {}
            }
        }
        Ok(elf)
    }

    /// # Errors
    /// When the program needs a loader or a library of the system, or runs on something else than `machine`.
    pub fn ensure_static(&self, machine: Machine) -> Result<()> {
        ensure!(self.machine == machine, "it is for {:?}, not for {machine:?}", self.machine);
        ensure!(!self.has_interpreter, "it has an interpreter segment: the system has to load it");
        ensure!(self.libraries == 0, "it needs {} shared libraries", self.libraries);
        Ok(())
    }
}

fn libraries(file: &[u8], offset: usize, bytes: usize) -> Result<usize> {
    ensure!(offset.saturating_add(bytes) <= file.len(), "the file ends inside its dynamic section");
    let mut found = 0;
    for at in (offset..offset.saturating_add(bytes)).step_by(16) {
        found += usize::from(number(file, at, 8)? == DT_NEEDED);
    }
    Ok(found)
}

/// The unsigned number of `bytes` bytes at `at`.
fn number(file: &[u8], at: usize, bytes: usize) -> Result<u64> {
    let field = at.checked_add(bytes).and_then(|end| file.get(at..end));
    let field = field.with_context(|| format!("the file ends before byte {}", at.saturating_add(bytes)))?;
    Ok(field.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF header with one program header behind it, and one entry of a dynamic section behind that.
    fn file(machine: u8, segment: u8, tag: u8) -> Vec<u8> {
        let mut file = vec![0; 64 + 56 + 16];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[18] = machine;
        file[32] = 64; // e_phoff
        file[54] = 56; // e_phentsize
        file[56] = 1; // e_phnum
        file[64] = segment;
        file[64 + 8] = 64 + 56; // p_offset
        file[64 + 32] = 16; // p_filesz
        file[64 + 56] = tag;
        file
    }

    #[test]
    fn a_static_program_has_neither_interpreter_nor_libraries() {
        let elf = Elf::parse(&file(62, 2, 0)).unwrap();
        elf.ensure_static(Machine::X86_64).unwrap();
        elf.ensure_static(Machine::Aarch64).unwrap_err();
        assert_eq!(Elf::parse(&file(183, 1, 0)).unwrap().machine, Machine::Aarch64);
    }

    #[test]
    fn what_needs_the_system_is_not_static() {
        let with_loader = Elf::parse(&file(62, 3, 0)).unwrap();
        assert!(with_loader.has_interpreter);
        with_loader.ensure_static(Machine::X86_64).unwrap_err();
        let with_library = Elf::parse(&file(62, 2, 1)).unwrap();
        assert_eq!(with_library.libraries, 1);
        with_library.ensure_static(Machine::X86_64).unwrap_err();
    }

    #[test]
    fn a_file_that_ends_early_is_no_program() {
        for length in 0..64 + 56 + 16 {
            Elf::parse(&file(62, 2, 0)[..length]).unwrap_err();
        }
    }
}
