//! Same bytes, same work: names the coded form of a body by the body itself.
//!
//! The app is asked every time, so nothing can be stale; only the codec is saved. The hash is keyed
//! with a random key of this process, so nobody outside can look for two bodies of one name. A route
//! with `breach` settings shares with no other, and with padding it must not reuse at all.

use crate::codec::Coding;

/// The names of one process: its random key.
#[derive(Clone)]
pub struct Names {
    key: [u8; 32],
}

impl std::fmt::Debug for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Names")
    }
}

/// The system gave no random bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no random bytes from the system")]
pub struct NoRandomness;

/// A body on its way to its name.
#[derive(Clone)]
pub struct Naming {
    hasher: blake3::Hasher,
}

impl std::fmt::Debug for Naming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Naming")
    }
}

/// A coded form of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest {
    hash: [u8; 32],
    length: u64,
    coding: Coding,
    effort: u8,
}

/// How a body is coded, and for whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form<'a> {
    /// The coding.
    pub coding: Coding,
    /// Its level: what a cheaper one made under pressure is another form.
    pub effort: u8,
    /// The only route that may have it; `None`: any.
    pub only: Option<&'a str>,
}

impl Names {
    /// With a new random key.
    ///
    /// # Errors
    /// Where the system gives no random bytes.
    pub fn new() -> Result<Self, NoRandomness> {
        let mut key = [0; 32];
        aws_lc_rs::rand::fill(&mut key).map_err(|_| NoRandomness)?;
        Ok(Self { key })
    }

    /// Starts with a body.
    #[must_use]
    pub fn begin(&self) -> Naming {
        Naming {
            hasher: blake3::Hasher::new_keyed(&self.key),
        }
    }
}

impl Naming {
    /// Further bytes of the body, in order.
    pub fn update(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
    }

    /// The name of this form of the body.
    #[must_use]
    pub fn finish(&self, form: Form<'_>) -> Digest {
        let mut hasher = self.hasher.clone();
        if let Some(route) = form.only {
            // The length in the digest tells a body with this at its end from one without.
            hasher.update(route.as_bytes());
        }
        Digest {
            hash: *hasher.finalize().as_bytes(),
            length: self.hasher.count(),
            coding: form.coding,
            effort: form.effort,
        }
    }
}

impl Digest {
    /// Of the form that it names.
    #[must_use]
    pub const fn coding(&self) -> Coding {
        self.coding
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GZIP: Form<'_> = Form {
        coding: Coding::Gzip,
        effort: 4,
        only: None,
    };

    fn name(names: &Names, parts: &[&[u8]], form: Form<'_>) -> Digest {
        let mut naming = names.begin();
        for part in parts {
            naming.update(part);
        }
        naming.finish(form)
    }

    #[test]
    fn one_body_has_one_name_however_it_came() {
        let names = Names::new().expect("random bytes");
        let whole = name(&names, &[b"hello world"], GZIP);
        assert_eq!(whole, name(&names, &[b"hello", b"", b" world"], GZIP));
        assert_ne!(whole, name(&names, &[b"hello World"], GZIP));
        assert_ne!(whole, name(&names, &[b"hello worl"], GZIP));
    }

    #[test]
    fn names_differ_by_form_route_and_process() {
        let names = Names::new().expect("random bytes");
        let gzip = name(&names, &[b"body"], GZIP);
        for form in [
            Form { effort: 5, ..GZIP },
            Form {
                coding: Coding::Zstd,
                ..GZIP
            },
            Form {
                only: Some("a"),
                ..GZIP
            },
        ] {
            assert_ne!(gzip, name(&names, &[b"body"], form));
        }
        let only = |route| Form {
            only: Some(route),
            ..GZIP
        };
        assert_ne!(
            name(&names, &[b"body"], only("a")),
            name(&names, &[b"body"], only("b"))
        );
        // The route's name is no part of the body.
        assert_ne!(
            name(&names, &[b"body"], only("a")),
            name(&names, &[b"bodya"], GZIP)
        );
        let other = Names::new().expect("random bytes");
        assert_ne!(gzip, name(&other, &[b"body"], GZIP));
    }
}
