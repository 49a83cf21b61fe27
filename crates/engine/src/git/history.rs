//! Commits and their ancestors, as git sees them: where a shallow clone ends, and with grafts and replaced commits.

use std::{
    cell::RefCell,
    collections::{BinaryHeap, HashMap, HashSet},
    fs,
    path::Path,
    rc::Rc,
};

use super::{CannotTell, GitDirs, ObjectId, ObjectKind, Objects, head, objects::MAX_OBJECT, work_tree::read_list};

/// The parts of a commit that are needed here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commit {
    pub tree: ObjectId,
    pub parents: Vec<ObjectId>,
    /// When it was committed, in seconds since the Unix epoch. It may be wrong, as clocks are.
    pub date: i64,
}

/// The most commits that one search visits.
const MOST_COMMITS: usize = 500_000;

/// A larger `shallow` or `info/grafts` file is not read.
const MAX_LIST: u64 = 64 << 20;

/// A replaced commit may be replaced again, this many times.
const MOST_REPLACEMENTS: usize = 5;

impl Commit {
    /// Reads a commit as it was made, without grafts.
    pub(crate) fn read(objects: &Objects, id: &ObjectId) -> Result<Self, CannotTell> {
        let bad = |why: &str| CannotTell::of(Path::new(&id.to_string()), why);
        let (kind, content) = objects.read(id, MAX_OBJECT)?.ok_or_else(|| bad("there is no such commit"))?;
        let commit = if kind == ObjectKind::Commit { Self::parse(&content) } else { None };
        commit.ok_or_else(|| bad("this is not a commit"))
    }

    fn parse(content: &[u8]) -> Option<Self> {
        let id = |hex: &[u8]| ObjectId::from_hex(str::from_utf8(hex).ok()?);
        let mut lines = content.split(|byte| *byte == b'\n').take_while(|line| !line.is_empty()).peekable();
        let tree = id(lines.next()?.strip_prefix(b"tree ")?)?;
        let mut parents = Vec::new();
        while let Some(parent) = lines.peek().and_then(|line| line.strip_prefix(b"parent ")) {
            parents.push(id(parent)?);
            lines.next();
        }
        let date = lines.find_map(|line| line.strip_prefix(b"committer ")).and_then(|committer| {
            let behind_mail = committer.iter().rposition(|byte| *byte == b'>')? + 1;
            str::from_utf8(&committer[behind_mail..]).ok()?.split_whitespace().next()?.parse().ok()
        });
        Some(Self { tree, parents, date: date.unwrap_or_default() })
    }
}

pub(crate) struct History<'a> {
    objects: &'a Objects,
    /// The commits whose parents differ from those that they name.
    grafts: HashMap<ObjectId, Vec<ObjectId>>,
    replaced: HashMap<ObjectId, ObjectId>,
    read: RefCell<HashMap<ObjectId, Rc<Commit>>>,
}

impl<'a> History<'a> {
    pub(crate) fn of(git: &GitDirs, objects: &'a Objects) -> Result<Self, CannotTell> {
        let mut grafts = HashMap::new();
        for line in read_list(&git.common.join("info/grafts"), MAX_LIST)?.lines().filter(|line| !line.starts_with('#')) {
            let ids: Option<Vec<ObjectId>> = line.split_whitespace().map(ObjectId::from_hex).collect();
            // Git skips a line that it cannot parse.
            if let Some([commit, parents @ ..]) = ids.as_deref() {
                grafts.insert(*commit, parents.to_vec());
            }
        }
        let shallow = read_list(&git.common.join("shallow"), MAX_LIST)?;
        grafts.extend(shallow.lines().filter_map(|line| Some((ObjectId::from_hex(line.trim())?, Vec::new()))));
        Ok(Self { objects, grafts, replaced: replacements(git)?, read: RefCell::default() })
    }

    pub(crate) fn commit(&self, id: &ObjectId) -> Result<Rc<Commit>, CannotTell> {
        if let Some(known) = self.read.borrow().get(id) {
            return Ok(known.clone());
        }
        let mut source = *id;
        for _ in 0..MOST_REPLACEMENTS {
            let Some(by) = self.replaced.get(&source) else { break };
            source = *by;
        }
        let mut commit = Commit::read(self.objects, &source)?;
        if let Some(parents) = self.grafts.get(id) {
            commit.parents.clone_from(parents);
        }
        let commit = Rc::new(commit);
        self.read.borrow_mut().insert(*id, commit.clone());
        Ok(commit)
    }

    /// The common ancestors of two commits, the youngest first, without those that are ancestors of another one. There
    /// are several if branches were merged criss-cross, and none if the histories do not meet.
    pub(crate) fn merge_bases(&self, one: &ObjectId, other: &ObjectId) -> Result<Vec<ObjectId>, CannotTell> {
        if one == other {
            return Ok(vec![*one]);
        }
        let mut common = self.paint(&[*one], &[*other])?.common();
        common.sort_by_key(|(id, date)| (std::cmp::Reverse(*date), *id));
        let mut bases: Vec<ObjectId> = common.into_iter().map(|(id, _)| id).collect();
        // If clocks were wrong, one may still be an ancestor of another.
        let mut place = 0;
        while bases.len() > 1 && place < bases.len() {
            let others: Vec<ObjectId> = bases.iter().copied().filter(|id| *id != bases[place]).collect();
            let painted = self.paint(&[bases[place]], &others)?;
            if painted.has(&bases[place], OTHER) {
                bases.remove(place);
                continue;
            }
            let here = bases[place];
            bases.retain(|id| *id == here || !painted.has(id, ONE));
            place = bases.iter().position(|id| *id == here).expect("it was kept") + 1;
        }
        Ok(bases)
    }

    /// Walks up from two sets of commits, the youngest commit first, until only common ancestors are left.
    fn paint(&self, one: &[ObjectId], other: &[ObjectId]) -> Result<Painting, CannotTell> {
        let mut painting = Painting::default();
        for (ids, paint) in [(one, ONE), (other, OTHER)] {
            for id in ids {
                painting.add(*id, self.commit(id)?.date, paint);
            }
        }
        while let Some((id, mut paint)) = painting.next() {
            if painting.painted.len() > MOST_COMMITS {
                return Err(CannotTell::of(Path::new(&id.to_string()), "the histories meet too far back"));
            }
            if paint == ONE | OTHER {
                painting.add_paint(id, COMMON);
                paint |= STALE;
            }
            for parent in &self.commit(&id)?.parents {
                painting.add(*parent, self.commit(parent)?.date, paint & !COMMON);
            }
        }
        Ok(painting)
    }
}

/// Reached from the first set of commits.
const ONE: u8 = 1;
/// Reached from the second set.
const OTHER: u8 = 2;
/// Reached from a common ancestor.
const STALE: u8 = 4;
/// Found to be a common ancestor.
const COMMON: u8 = 8;

/// Which commits were reached, and from where.
#[derive(Default)]
struct Painting {
    painted: HashMap<ObjectId, Painted>,
    queue: BinaryHeap<(i64, ObjectId)>,
    /// How many entries of the queue are not stale.
    fresh: usize,
}

#[derive(Default)]
struct Painted {
    paint: u8,
    date: i64,
    /// How often it is in the queue.
    queued: usize,
}

impl Painting {
    fn add_paint(&mut self, id: ObjectId, paint: u8) {
        let painted = self.painted.entry(id).or_default();
        if painted.paint & STALE == 0 && paint & STALE != 0 {
            self.fresh -= painted.queued;
        }
        painted.paint |= paint;
    }

    /// Paints a commit, and queues it unless it had this paint.
    fn add(&mut self, id: ObjectId, date: i64, paint: u8) {
        if self.has(&id, paint) {
            return;
        }
        self.add_paint(id, paint);
        let painted = self.painted.get_mut(&id).expect("it was painted");
        painted.date = date;
        painted.queued += 1;
        self.fresh += usize::from(painted.paint & STALE == 0);
        self.queue.push((date, id));
    }

    fn next(&mut self) -> Option<(ObjectId, u8)> {
        if self.fresh == 0 {
            return None;
        }
        let (_, id) = self.queue.pop()?;
        let painted = self.painted.get_mut(&id)?;
        painted.queued -= 1;
        self.fresh -= usize::from(painted.paint & STALE == 0);
        Some((id, painted.paint & (ONE | OTHER | STALE)))
    }

    fn has(&self, id: &ObjectId, paint: u8) -> bool {
        self.painted.get(id).is_some_and(|painted| painted.paint & paint == paint)
    }

    fn common(&self) -> Vec<(ObjectId, i64)> {
        let is_base = |painted: &Painted| painted.paint & (COMMON | STALE) == COMMON;
        self.painted.iter().filter(|(_, painted)| is_base(painted)).map(|(id, painted)| (*id, painted.date)).collect()
    }
}

/// The commits that `git replace` replaced.
fn replacements(git: &GitDirs) -> Result<HashMap<ObjectId, ObjectId>, CannotTell> {
    const DIRECTORY: &str = "refs/replace";
    let loose = fs::read_dir(git.common.join(DIRECTORY)).into_iter().flatten().flatten();
    let mut names: HashSet<String> = loose.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.extend(head::packed_below(git, "refs/replace/")?);
    let mut replaced = HashMap::new();
    for name in names {
        let Some(id) = ObjectId::from_hex(&name) else { continue };
        if let Some(by) = head::reference(git, &format!("{DIRECTORY}/{name}"))?.commit {
            replaced.insert(id, by);
        }
    }
    Ok(replaced)
}
