//! The files that are measured on: text that looks like code, different in every file, with one unique token in the middle.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// The token in the state `n`; all have the same length, so that an edit keeps the size of the file.
pub fn token(n: usize) -> String {
    format!("token_{n:08}")
}

/// At least `size` bytes in lines of about 40 characters, with `token(0)` in the middle; `seed` makes it differ from other files.
pub fn content(seed: usize, size: usize) -> String {
    let mut text = String::with_capacity(size + 100);
    let mut line = 0;
    let mut marked = false;
    while text.len() < size {
        if !marked && text.len() >= size / 2 {
            text.push_str(&format!("    let state = \"{}\";\n", token(0)));
            marked = true;
        }
        // JSON escapes quotes; about as many lines have them as in code.
        let value = if line % 4 == 0 { "map[\"key\"]" } else { "map[index]" };
        text.push_str(&format!("    let v{seed:05}_{line:05} = {value} + 1;\n"));
        line += 1;
    }
    text
}

/// Writes a file and the directories above it.
pub fn create(root: &Path, path: &str, content: &str) -> Result<()> {
    let path = root.join(path);
    let directory = path.parent().expect("a path below the root has a parent");
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    fs::write(&path, content).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_size_and_one_token() {
        for size in [200, 1024, 100 * 1024] {
            let text = content(3, size);
            assert!((size..size + 80).contains(&text.len()), "{} bytes for {size}", text.len());
            assert_eq!(text.matches(&token(0)).count(), 1);
        }
    }
}
