//! The files of the commit at HEAD, and which index entries equal them.

use std::{collections::BTreeMap, path::Path};

use super::{
    CannotTell, Commit, GitIndex, ObjectId, ObjectKind, Objects,
    entries::{CachedTree, DEEPEST},
    objects::MAX_OBJECT,
};

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

/// The tree of a commit, compared with the index of its checkout.
#[derive(Debug)]
pub(crate) struct HeadTree {
    /// One bit per index entry: whether the commit has the same blob at its path.
    same: Vec<u64>,
    /// Files of the commit that the index lacks, or has with another blob.
    pub others: BTreeMap<Vec<u8>, TreeEntry>,
}

impl HeadTree {
    /// The empty tree, for a repository without commits.
    pub(crate) fn none(index: &GitIndex) -> Self {
        Self { same: vec![0; index.entries().len().div_ceil(64)], others: BTreeMap::new() }
    }

    /// Compares the tree of a commit with an index. Trees that the index caches are not read.
    pub(crate) fn compare(objects: &Objects, tree: &ObjectId, index: &GitIndex) -> Result<Self, CannotTell> {
        let mut found = Self::none(index);
        let mut compare = Compare { objects, index, found: &mut found };
        compare.tree(tree, index.trees.as_ref(), &mut Vec::new(), 0..index.entries().len(), 0)?;
        Ok(found)
    }

    /// Whether the index entry at this place equals the commit.
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
    /// Compares a tree of the commit with the index entries of the same directory.
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
                let below = self.entries_below(prefix, range.clone());
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

    /// The index entries whose paths start with this prefix.
    fn entries_below(&self, prefix: &[u8], range: std::ops::Range<usize>) -> std::ops::Range<usize> {
        let entries = &self.index.entries()[range.clone()];
        let start = entries.partition_point(|entry| self.index.name(entry) < prefix);
        let length = entries[start..].partition_point(|entry| self.index.name(entry).starts_with(prefix));
        range.start + start..range.start + start + length
    }
}

pub(crate) fn tree_of(objects: &Objects, commit: &ObjectId) -> Result<ObjectId, CannotTell> {
    Commit::read(objects, commit).map(|commit| commit.tree)
}

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

pub(crate) fn entry_at(objects: &Objects, tree: &ObjectId, path: &str) -> Result<Option<TreeEntry>, CannotTell> {
    let mut found = TreeEntry { mode: 0o40_000, id: *tree };
    for name in path.split('/') {
        if !found.is_tree() {
            return Ok(None);
        }
        let entries = read_tree(objects, &found.id)?;
        let Some((_, entry)) = entries.into_iter().find(|(known, _)| known == name.as_bytes()) else { return Ok(None) };
        found = entry;
    }
    Ok(Some(found))
}

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
