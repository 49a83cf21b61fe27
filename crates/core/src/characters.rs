//! Characters that are not what they seem: those that cannot be seen, those that look like plain ones, and letters that Unicode
//! can spell in two ways. Only for comparing and for naming what differs; no text is ever changed by this.

use std::{borrow::Cow, collections::HashMap, sync::LazyLock};

/// What stands for a character when texts are compared by their looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looks {
    /// White space.
    Blank,
    /// Nothing at all.
    Invisible,
    /// These plain characters.
    Like(&'static str),
    /// A letter and its mark.
    Composed(char, char),
    /// Itself.
    Itself,
}

/// How a character looks.
pub(crate) fn looks(c: char) -> Looks {
    if c.is_ascii_graphic() {
        return Looks::Itself;
    }
    match c {
        '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' => Looks::Invisible,
        '\u{2060}'..='\u{2069}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' => Looks::Invisible,
        c if c.is_whitespace() => Looks::Blank,
        c if c.is_ascii() => Looks::Itself,
        c => ALIKE.get(&c).copied().unwrap_or(Looks::Itself),
    }
}

/// Pushes what stands for a character; nothing for one that cannot be seen.
pub(crate) fn fold(c: char, into: &mut String) {
    match looks(c) {
        Looks::Blank | Looks::Invisible => {}
        Looks::Itself => into.push(c),
        Looks::Like(plain) => into.push_str(plain),
        // A letter may have two marks, one composed with it before the other.
        Looks::Composed(letter, mark) => {
            fold(letter, into);
            into.push(mark);
        }
    }
}

/// Whether this mark belongs to the letter before it.
pub(crate) fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{3099}' | '\u{309a}')
}

/// What a character is called, where its looks do not say it.
pub(crate) fn name(c: char) -> Option<Cow<'static, str>> {
    let named = NAMES.iter().find(|(named, _)| *named == c).map(|(_, name)| *name);
    let like = LIKE.iter().find(|(alike, ..)| *alike == c).map(|(_, _, name)| *name);
    let mark = MARKS.iter().find(|(mark, ..)| *mark == c).map(|(_, name, _)| *name);
    if let Some(name) = named.or(like).or(mark) {
        return Some(Cow::Borrowed(name));
    }
    match (looks(c), c) {
        (Looks::Like(plain), '\u{370}'..='\u{3ff}') => Some(Cow::Owned(format!("a Greek letter that looks like {plain}"))),
        (Looks::Like(plain), '\u{400}'..='\u{52f}') => Some(Cow::Owned(format!("a Cyrillic letter that looks like {plain}"))),
        (Looks::Like(plain), _) => Some(Cow::Owned(format!("fullwidth {plain}"))),
        (Looks::Invisible, _) => Some(Cow::Borrowed("invisible")),
        (Looks::Blank, _) => Some(Cow::Borrowed("white space")),
        _ if c.is_control() => Some(Cow::Borrowed("a control character")),
        _ => None,
    }
}

static ALIKE: LazyLock<HashMap<char, Looks>> = LazyLock::new(|| {
    let like = LIKE.iter().map(|(c, plain, _)| (*c, Looks::Like(plain)));
    let letters = LETTERS
        .iter()
        .flat_map(|pairs| in_pairs(pairs).map(|(c, plain, at)| (c, Looks::Like(&pairs[at..at + plain.len_utf8()]))));
    let fullwidth = (0..94).filter_map(|at| Some((char::from_u32(0xff01 + at as u32)?, Looks::Like(&PLAIN[at..=at]))));
    let composed = |(mark, _, pairs): &(char, _, &'static str)| {
        let mark = *mark;
        in_pairs(pairs).map(move |(letter, composed, _)| (composed, Looks::Composed(letter, mark)))
    };
    like.chain(letters).chain(fullwidth).chain(MARKS.iter().flat_map(composed)).collect()
});

/// Two characters after each other, and where the second begins. Blanks between are for the eye.
fn in_pairs(pairs: &str) -> impl Iterator<Item = (char, char, usize)> {
    let mut chars = pairs.char_indices().filter(|(_, c)| *c != ' ');
    std::iter::from_fn(move || {
        let (_, first) = chars.next()?;
        let (at, second) = chars.next()?;
        Some((first, second, at))
    })
}

const PLAIN: &str = "!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~";

const NAMES: &[(char, &str)] = &[
    ('\0', "null"),
    ('\u{8}', "backspace"),
    ('\t', "TAB"),
    ('\u{b}', "vertical tab"),
    ('\u{c}', "form feed"),
    ('\r', "carriage return"),
    ('\u{1b}', "escape"),
    (' ', "space"),
    ('\u{85}', "next line"),
    ('\u{a0}', "no-break space"),
    ('\u{ad}', "soft hyphen"),
    ('\u{2002}', "en space"),
    ('\u{2003}', "em space"),
    ('\u{2007}', "figure space"),
    ('\u{2009}', "thin space"),
    ('\u{200a}', "hair space"),
    ('\u{200b}', "zero width space"),
    ('\u{200c}', "zero width non-joiner"),
    ('\u{200d}', "zero width joiner"),
    ('\u{200e}', "left-to-right mark"),
    ('\u{200f}', "right-to-left mark"),
    ('\u{2028}', "line separator"),
    ('\u{2029}', "paragraph separator"),
    ('\u{202f}', "narrow no-break space"),
    ('\u{2060}', "word joiner"),
    ('\u{3000}', "ideographic space"),
    ('\u{fe0f}', "variation selector-16"),
    ('\u{feff}', "byte order mark"),
];

const LIKE: &[(char, &str, &str)] = &[
    ('\u{b4}', "'", "acute accent"),
    ('\u{2bc}', "'", "modifier letter apostrophe"),
    ('\u{2018}', "'", "left single quotation mark"),
    ('\u{2019}', "'", "right single quotation mark"),
    ('\u{201b}', "'", "single high-reversed-9 quotation mark"),
    ('\u{2032}', "'", "prime"),
    ('\u{201c}', "\"", "left double quotation mark"),
    ('\u{201d}', "\"", "right double quotation mark"),
    ('\u{201e}', "\"", "double low-9 quotation mark"),
    ('\u{2033}', "\"", "double prime"),
    ('\u{2010}', "-", "hyphen"),
    ('\u{2011}', "-", "non-breaking hyphen"),
    ('\u{2012}', "-", "figure dash"),
    ('\u{2013}', "-", "en dash"),
    ('\u{2014}', "-", "em dash"),
    ('\u{2015}', "-", "horizontal bar"),
    ('\u{2212}', "-", "minus sign"),
    ('\u{2026}', "...", "horizontal ellipsis"),
    ('\u{37e}', ";", "Greek question mark"),
    ('\u{2044}', "/", "fraction slash"),
    ('\u{2215}', "/", "division slash"),
    ('\u{2236}', ":", "ratio"),
    ('\u{d7}', "x", "multiplication sign"),
    ('\u{2217}', "*", "asterisk operator"),
    ('\u{2223}', "|", "divides"),
    ('\u{2039}', "<", "single left-pointing angle quotation mark"),
    ('\u{203a}', ">", "single right-pointing angle quotation mark"),
];

/// Cyrillic and Greek letters, each before the Latin one that it looks like.
const LETTERS: &[&str] = &["аaеeоoрpсcхxуyіiјjѕsһhԁdԛqԝwАAВBЕEКKМMНHОOРPСCТTХXУYІIЈJЅS", "ΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧXοoνvιiκk"];

/// Marks, their names, and the letters that are one character with them, each behind the letter alone.
const MARKS: &[(char, &str, &str)] = &[
    ('\u{300}', "combining grave accent", "AÀEÈIÌOÒUÙaàeèiìoòuùÜǛüǜNǸnǹĒḔēḕŌṐōṑWẀwẁÂẦâầĂẰăằÊỀêềÔỒôồƠỜơờƯỪưừYỲyỳ"),
    (
        '\u{301}',
        "combining acute accent",
        "AÁEÉIÍOÓUÚYÝaáeéiíoóuúyýCĆcćLĹlĺNŃnńRŔrŕSŚsśZŹzźÜǗüǘGǴgǵÅǺåǻÆǼæǽØǾøǿÇḈçḉĒḖēḗÏḮïḯKḰkḱMḾmḿÕṌõṍŌṒōṓPṔpṕ \
         ŨṸũṹWẂwẃÂẤâấĂẮăắÊẾêếÔỐôốƠỚơớƯỨưứ",
    ),
    ('\u{302}', "combining circumflex accent", "AÂEÊIÎOÔUÛaâeêiîoôuûCĈcĉGĜgĝHĤhĥJĴjĵSŜsŝWŴwŵYŶyŷZẐzẑẠẬạậẸỆẹệỌỘọộ"),
    ('\u{303}', "combining tilde", "AÃNÑOÕaãnñoõIĨiĩUŨuũVṼvṽÂẪâẫĂẴăẵEẼeẽÊỄêễÔỖôỗƠỠơỡƯỮưữYỸyỹ"),
    ('\u{304}', "combining macron", "AĀaāEĒeēIĪiīOŌoōUŪuūÜǕüǖÄǞäǟȦǠȧǡÆǢæǣǪǬǫǭÖȪöȫÕȬõȭȮȰȯȱYȲyȳGḠgḡḶḸḷḹṚṜṛṝ"),
    ('\u{306}', "combining breve", "AĂaăEĔeĕGĞgğIĬiĭOŎoŏUŬuŭȨḜȩḝẠẶạặ"),
    (
        '\u{307}',
        "combining dot above",
        "CĊcċEĖeėGĠgġIİZŻzżAȦaȧOȮoȯBḂbḃDḊdḋFḞfḟHḢhḣMṀmṁNṄnṅPṖpṗRṘrṙSṠsṡŚṤśṥŠṦšṧṢṨṣṩTṪtṫWẆwẇXẊxẋYẎyẏſẛ",
    ),
    ('\u{308}', "combining diaeresis", "AÄEËIÏOÖUÜaäeëiïoöuüyÿYŸHḦhḧÕṎõṏŪṺūṻWẄwẅXẌxẍtẗ"),
    ('\u{309}', "combining hook above", "AẢaảÂẨâẩĂẲăẳEẺeẻÊỂêểIỈiỉOỎoỏÔỔôổƠỞơởUỦuủƯỬưửYỶyỷ"),
    ('\u{30a}', "combining ring above", "AÅaåUŮuůwẘyẙ"),
    ('\u{30b}', "combining double acute accent", "OŐoőUŰuű"),
    ('\u{30c}', "combining caron", "CČcčDĎdďEĚeěLĽlľNŇnňRŘrřSŠsšTŤtťZŽzžAǍaǎIǏiǐOǑoǒUǓuǔÜǙüǚGǦgǧKǨkǩƷǮʒǯjǰHȞhȟ"),
    ('\u{30f}', "combining double grave accent", "AȀaȁEȄeȅIȈiȉOȌoȍRȐrȑUȔuȕ"),
    ('\u{311}', "combining inverted breve", "AȂaȃEȆeȇIȊiȋOȎoȏRȒrȓUȖuȗ"),
    ('\u{31b}', "combining horn", "OƠoơUƯuư"),
    ('\u{323}', "combining dot below", "BḄbḅDḌdḍHḤhḥKḲkḳLḶlḷMṂmṃNṆnṇRṚrṛSṢsṣTṬtṭVṾvṿWẈwẉZẒzẓAẠaạEẸeẹIỊiịOỌoọƠỢơợUỤuụƯỰưựYỴyỵ"),
    ('\u{324}', "combining diaeresis below", "UṲuṳ"),
    ('\u{325}', "combining ring below", "AḀaḁ"),
    ('\u{326}', "combining comma below", "SȘsșTȚtț"),
    ('\u{327}', "combining cedilla", "CÇcçGĢgģKĶkķLĻlļNŅnņRŖrŗSŞsşTŢtţEȨeȩDḐdḑHḨhḩ"),
    ('\u{328}', "combining ogonek", "AĄaąEĘeęIĮiįUŲuųOǪoǫ"),
    ('\u{32d}', "combining circumflex accent below", "DḒdḓEḘeḙLḼlḽNṊnṋTṰtṱUṶuṷ"),
    ('\u{32e}', "combining breve below", "HḪhḫ"),
    ('\u{330}', "combining tilde below", "EḚeḛIḬiḭUṴuṵ"),
    ('\u{331}', "combining macron below", "BḆbḇDḎdḏKḴkḵLḺlḻNṈnṉRṞrṟTṮtṯZẔzẕhẖ"),
    (
        '\u{3099}',
        "combining katakana-hiragana voiced sound mark",
        "かがきぎくぐけげこごさざしじすずせぜそぞただちぢつづてでとどはばひびふぶへべほぼうゔゝゞカガキギ \
         クグケゲコゴサザシジスズセゼソゾタダチヂツヅテデトドハバヒビフブヘベホボウヴワヷヰヸヱヹヲヺヽヾ",
    ),
    ('\u{309a}', "combining katakana-hiragana semi-voiced sound mark", "はぱひぴふぷへぺほぽハパヒピフプヘペホポ"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, folded: &str) {
        let mut found = String::new();
        text.chars().for_each(|c| fold(c, &mut found));
        assert_eq!(found, folded);
    }

    #[test]
    fn what_looks_alike_folds_alike() {
        check("a\tb\u{a0}c\u{200b}\r\n", "abc");
        check("\u{2018}it\u{2019}s\u{2026}\u{201d} \u{2014} \u{37e}", "'it's...\"-;");
        check("\u{441}\u{430}t \u{39f}\u{ff08}\u{ff5e}", "catO(~");
        check("caf\u{e9} caf\u{65}\u{301}", "cafe\u{301}cafe\u{301}");
        check("\u{1ea5}", "a\u{302}\u{301}");
        check("\u{304c}", "\u{304b}\u{3099}");
        check("\u{4e2d}\u{1f600}\u{df}", "\u{4e2d}\u{1f600}\u{df}");
    }

    #[test]
    fn what_cannot_be_told_by_its_looks_has_a_name() {
        let check = |c: char, expected: &str| assert_eq!(name(c).as_deref().unwrap_or("none"), expected);
        check('\u{2019}', "right single quotation mark");
        check('\u{a0}', "no-break space");
        check('\u{301}', "combining acute accent");
        check('\u{430}', "a Cyrillic letter that looks like a");
        check('\u{391}', "a Greek letter that looks like A");
        check('\u{ff1b}', "fullwidth ;");
        check('\u{1}', "a control character");
        check('\u{2066}', "invisible");
        check('a', "none");
        check('\u{e9}', "none");
    }
}
