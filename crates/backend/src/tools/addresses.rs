//! Rules about addresses on the web.

/// Whether an address is inside a domain; nothing when programs could read the address in
/// different ways.
pub(super) fn is_inside(domain: &str, url: &str) -> Option<bool> {
    let host = host(url)?;
    let domain = domain.trim().trim_end_matches('.').to_ascii_lowercase();
    let below = |domain: &str| host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
    Some(match domain.strip_prefix("*.") {
        Some(domain) => below(domain),
        None => domain == "*" || host == domain || below(&domain),
    })
}

/// Whether all programs read an address in the same way.
pub(super) fn is_plain(url: &str) -> bool {
    host(url).is_some()
}

/// The host of a plain address, in lower case.
fn host(url: &str) -> Option<String> {
    let is_odd = |c: char| c == '\\' || c.is_whitespace() || c.is_control();
    if url.contains(is_odd) {
        return None;
    }
    let (scheme, rest) = url.split_once("://")?;
    if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
    let host = host.strip_suffix('.').unwrap_or(host);
    let is_part = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    };
    let is_plain = host.split('.').all(is_part) && port.chars().all(|c| c.is_ascii_digit());
    is_plain.then(|| host.to_ascii_lowercase())
}
