//! The files of the commit at HEAD, and which of the index's entries are as they are there.

use std::{collections::BTreeMap, path::Path};

use super::{CannotTell, GitIndex, ObjectId, ObjectKind, Objects, entries::CachedTree, objects::MAX_OBJECT};

/// A directory is nested so deep at most.
const DEEPEST: usize = 2048;

/// A file or directory in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TreeEntry {
    /// 100644, 100755, 120000, 160000 or 40000.
    pub mode: u32,
    /// The blob or tree.
    pub id: ObjectId,
}

impl TreeEntry {
    fn is_tree(&self) -> bool {
        self.mode == 0o40_000
    }
}

/// The tree of a commit, beside the index of its checkout.
#[derive(Debug)]
pub(crate) struct HeadTree {
    /// One bit for each entry of the index: whether the commit has this very blob at its path.
    same: Vec<u64>,
    /// Files of the commit that the index does not have, or has as another blob.
    pub others: BTreeMap<Vec<u8>, TreeEntry>,
}

impl HeadTree {
    /// The tree where there is no commit.
    pub(crate) fn none(index: &GitIndex) -> Self {
        Self { same: vec![0; index.entries().len().div_ceil(64)], others: BTreeMap::new() }
    }

    /// Compares the tree of a commit with an index. Trees that git remembers to have made of the entries are not read.
    pub(crate) fn compare(objects: &Objects, tree: &ObjectId, index: &GitIndex) -> Result<Self, CannotTell> {
        let mut found = Self::none(index);
        let mut compare = Compare { objects, index, found: &mut found };
        compare.tree(tree, index.trees.as_ref(), &mut Vec::new(), 0..index.entries().len(), 0)?;
        Ok(found)
    }

    /// Whether the entry of the index at this place is as the commit has it.
    pub(crate) fn has(&self, place: usize) -> bool {
        self.same[place / 64] & (1 << (place % 64)) != 0
    }

    fn mark(&mut self, place: usize) {
        self.same[place / 64] |= 1 << (place % 64);
    }
}

struct Compare<'a> {
    objects: &'a Objects,
    index: &'a GitIndex,
    found: &'a mut HeadTree,
}

impl Compare<'_> {
    /// A tree of the commit, beside the entries of the index below the same directory.
    fn tree(
        &mut self,
        id: &ObjectId,
        cached: Option<&CachedTree>,
        prefix: &mut Vec<u8>,
        range: std::ops::Range<usize>,
        depth: usize,
    ) -> Result<(), CannotTell> {
        if cached.and_then(|cached| cached.made) == Some((range.len(), *id)) {
            range.for_each(|place| self.found.mark(place));
            return Ok(());
        }
        if depth > DEEPEST {
            return Err(CannotTell::of(Path::new(&id.to_string()), "the tree is too deep"));
        }
        for (name, entry) in read_tree(self.objects, id)? {
            let length = prefix.len();
            prefix.extend_from_slice(&name);
            if entry.is_tree() {
                prefix.push(b'/');
                let below = self.below(prefix, range.clone());
                let cached = cached.and_then(|cached| cached.below.iter().find(|below| below.name == name));
                self.tree(&entry.id, cached, prefix, below, depth + 1)?;
            } else {
                let entries = self.index.entries();
                match self.index.find(prefix) {
                    Some(place) if (entries[place].mode, entries[place].id) == (entry.mode, entry.id) => self.found.mark(place),
                    _ => drop(self.found.others.insert(prefix.clone(), entry)),
                }
            }
            prefix.truncate(length);
        }
        Ok(())
    }

    /// The entries of the index whose paths begin with this.
    fn below(&self, prefix: &[u8], range: std::ops::Range<usize>) -> std::ops::Range<usize> {
        let entries = &self.index.entries()[range.clone()];
        let start = entries.partition_point(|entry| self.index.name(entry) < prefix);
        let length = entries[start..].partition_point(|entry| self.index.name(entry).starts_with(prefix));
        range.start + start..range.start + start + length
    }
}

/// The tree of a commit.
pub(crate) fn tree_of(objects: &Objects, commit: &ObjectId) -> Result<ObjectId, CannotTell> {
    let bad = |why: &str| CannotTell::of(Path::new(&commit.to_string()), why);
    let (kind, content) = objects.read(commit, MAX_OBJECT)?.ok_or_else(|| bad("there is no such commit"))?;
    let line = content.split(|byte| *byte == b'\n').next().filter(|_| kind == ObjectKind::Commit);
    let id = line.and_then(|line| ObjectId::from_hex(str::from_utf8(line.strip_prefix(b"tree ")?).ok()?));
    id.ok_or_else(|| bad("this is not a commit"))
}

/// What a tree holds: names, and what they stand for.
pub(crate) fn read_tree(objects: &Objects, id: &ObjectId) -> Result<Vec<(Vec<u8>, TreeEntry)>, CannotTell> {
    let bad = |why: &str| CannotTell::of(Path::new(&id.to_string()), why);
    let (kind, content) = objects.read(id, MAX_OBJECT)?.ok_or_else(|| bad("there is no such tree"))?;
    let entries = Some(content).filter(|_| kind == ObjectKind::Tree).and_then(|content| parse(&content, id.as_bytes().len()));
    entries.ok_or_else(|| bad("this is not a tree"))
}

fn parse(mut rest: &[u8], hash: usize) -> Option<Vec<(Vec<u8>, TreeEntry)>> {
    let mut entries = Vec::new();
    while !rest.is_empty() {
        let space = memchr::memchr(b' ', rest)?;
        let mode = u32::from_str_radix(str::from_utf8(&rest[..space]).ok()?, 8).ok()?;
        rest = &rest[space + 1..];
        let end = memchr::memchr(0, rest)?;
        let name = rest[..end].to_vec();
        let is_name = !name.is_empty() && name != b"." && name != b".." && !name.contains(&b'/');
        let (id, after) = rest[end + 1..].split_at_checked(hash).filter(|_| is_name)?;
        entries.push((name, TreeEntry { mode, id: ObjectId::from_bytes(id)? }));
        rest = after;
    }
    Some(entries)
}

/// Every file of a tree, by path.
pub(crate) fn files_of(objects: &Objects, tree: &ObjectId) -> Result<BTreeMap<Vec<u8>, TreeEntry>, CannotTell> {
    let mut files = BTreeMap::new();
    let mut open = vec![(Vec::new(), *tree, 0)];
    while let Some((prefix, tree, depth)) = open.pop() {
        if depth > DEEPEST {
            return Err(CannotTell::of(Path::new(&tree.to_string()), "the tree is too deep"));
        }
        for (name, entry) in read_tree(objects, &tree)? {
            let path = [&prefix[..], &name].concat();
            if entry.is_tree() {
                open.push(([&path[..], b"/"].concat(), entry.id, depth + 1));
            } else {
                files.insert(path, entry);
            }
        }
    }
    Ok(files)
}
