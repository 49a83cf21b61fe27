//! The bearer token that a client must send.

use std::fmt;

use hyper::{HeaderMap, header::AUTHORIZATION};

/// A bearer token of at least 8 visible ASCII characters.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

/// Omits the secret, which would end up in a log.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// A token with this secret; `None` if it is too short or a header cannot hold it.
    pub fn new(secret: &str) -> Option<Self> {
        let secret = secret.trim();
        let is_sendable = secret.len() >= 8 && secret.bytes().all(|byte| byte.is_ascii_graphic());
        is_sendable.then(|| Self(secret.to_owned()))
    }

    /// Generates a random token.
    pub fn generate() -> std::io::Result<Self> {
        let mut random = [0_u8; 24];
        let filled = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        assert_eq!(filled, random.len(), "the system returns so few bytes in one call");
        Ok(Self(random.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The secret, to be shown once to the person who sets up the clients.
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// Whether a request carries it, once and as a whole.
    pub fn is_shown(&self, headers: &HeaderMap) -> bool {
        let mut shown = headers.get_all(AUTHORIZATION).iter();
        let (Some(only), None) = (shown.next(), shown.next()) else { return false };
        let Some((scheme, secret)) = only.as_bytes().split_first_chunk::<7>() else { return false };
        scheme.eq_ignore_ascii_case(b"bearer ") && are_equal(secret, self.0.as_bytes())
    }
}

/// Compares in constant time, so that the time does not reveal how much of a guess is right.
pub fn are_equal(one: &[u8], other: &[u8]) -> bool {
    let difference = one.iter().zip(other).fold(0, |difference, (a, b)| std::hint::black_box(difference | (a ^ b)));
    one.len() == other.len() && difference == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(shown: &[&str], expected: bool) {
        let mut headers = HeaderMap::new();
        for value in shown {
            headers.append(AUTHORIZATION, value.parse().unwrap());
        }
        assert_eq!(Token::new("s3cret-s3cret").unwrap().is_shown(&headers), expected, "{shown:?}");
    }

    #[test]
    fn only_the_whole_token_is_let_in() {
        check(&["Bearer s3cret-s3cret"], true);
        check(&["bearer s3cret-s3cret"], true);
        check(&[], false);
        check(&["s3cret-s3cret"], false);
        check(&["Bearer "], false);
        check(&["Bearer s3cret-s3cre"], false);
        check(&["Bearer s3cret-s3crets"], false);
        check(&["Bearer s3cret-s3creT"], false);
        check(&["Basic s3cret-s3cret"], false);
        check(&["Bearer s3cret-s3cret", "Bearer s3cret-s3cret"], false);
    }

    #[test]
    fn a_made_token_is_another_each_time_and_does_not_show_in_logs() {
        let (one, other) = (Token::generate().unwrap(), Token::generate().unwrap());
        assert!(one != other && one.secret().len() == 48);
        assert_eq!(format!("{one:?}"), "Token");
    }

    #[test]
    fn what_is_no_secret_is_refused() {
        for bad in ["", "short", "with a space", "line\nbreak"] {
            assert_eq!(Token::new(bad), None);
        }
        assert_eq!(Token::new(" s3cret-s3cret\n").unwrap().secret(), "s3cret-s3cret");
    }
}
