//! Profiles of the AWS command line: the files `~/.aws/credentials` and `~/.aws/config`.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::PathBuf;

use object_store::aws::AmazonS3ConfigKey;

use crate::error::{Error, Result};

/// Settings of a service, in the order of their application.
pub type Settings = Vec<(AmazonS3ConfigKey, String)>;

/// The names and values of each profile.
type Profiles = BTreeMap<String, BTreeMap<String, String>>;

/// Names in the files, and what they set.
const NAMES: [(&str, AmazonS3ConfigKey); 5] = [
    ("aws_access_key_id", AmazonS3ConfigKey::AccessKeyId),
    ("aws_secret_access_key", AmazonS3ConfigKey::SecretAccessKey),
    ("aws_session_token", AmazonS3ConfigKey::Token),
    ("region", AmazonS3ConfigKey::Region),
    ("endpoint_url", AmazonS3ConfigKey::Endpoint),
];

/// The settings of the profile `name`.
///
/// # Errors
/// `Invalid` if it does not exist; `Unsupported` if it has no keys, but a role or a login; `Io` if a file cannot be
/// read.
pub fn read_profile(name: &str) -> Result<Settings> {
    let paths = paths();
    let profiles = read(&paths)?;
    let Some(profile) = profiles.get(name) else {
        let paths: Vec<String> = paths
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let known: Vec<&str> = profiles.keys().map(String::as_str).collect();
        let known = match known.is_empty() {
            true => "none".to_owned(),
            false => known.join(", "),
        };
        return Err(Error::invalid(format!(
            "the profile {name:?} is not in {}; available: {known}",
            paths.join(" or ")
        )));
    };
    if !profile.contains_key("aws_access_key_id") {
        return Err(Error::unsupported(format!(
            "the profile {name:?} has no access key; set the variables of its keys with `eval $(aws configure \
             export-credentials --profile {name} --format env)`"
        )));
    }
    Ok(settings(profile))
}

/// The settings of the profile that `AWS_PROFILE` names, or of the default one, if it has keys.
///
/// # Errors
/// As `named`, if `AWS_PROFILE` is set; `Io` if a file cannot be read.
pub fn read_default_profile() -> Result<Settings> {
    match env::var("AWS_PROFILE") {
        Ok(name) if !name.is_empty() => read_profile(&name),
        _ => {
            let profiles = read(&paths())?;
            let default = profiles.get("default");
            let default = default.filter(|profile| profile.contains_key("aws_access_key_id"));
            Ok(default.map(settings).unwrap_or_default())
        }
    }
}

fn settings(profile: &BTreeMap<String, String>) -> Settings {
    let found = NAMES
        .iter()
        .filter_map(|(name, key)| Some((*key, profile.get(*name)?.clone())));
    found.collect()
}

/// The paths of both files.
fn paths() -> Vec<PathBuf> {
    let path = |variable: &str, name: &str| {
        let given = env::var_os(variable).map(PathBuf::from);
        given.or_else(|| Some(env::home_dir()?.join(".aws").join(name)))
    };
    let paths = [
        path("AWS_CONFIG_FILE", "config"),
        path("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
    ];
    paths.into_iter().flatten().collect()
}

/// The profiles of the files at `paths`; none if they do not exist.
///
/// # Errors
/// `Io` if a file cannot be read.
fn read(paths: &[PathBuf]) -> Result<Profiles> {
    let mut profiles = Profiles::new();
    // In a container, the home may be that of another user: its files do not exist for this one.
    for path in paths.iter().filter(|path| path.exists()) {
        let text = fs::read_to_string(path);
        let text = text.map_err(|error| Error::io(error, path, "reading profiles failed"))?;
        add(&mut profiles, &text);
    }
    Ok(profiles)
}

/// Adds the profiles of a file to `profiles`. Other sections, and settings in blocks below a name, are ignored.
fn add(profiles: &mut Profiles, text: &str) {
    let mut current = None;
    for line in text.lines() {
        let is_block = line.starts_with([' ', '\t']);
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[') {
            let name = name.split(']').next().unwrap_or_default().trim();
            if ["sso-session ", "services "]
                .iter()
                .any(|kind| name.starts_with(kind))
            {
                current = None;
                continue;
            }
            let name = name.strip_prefix("profile ").unwrap_or(name).trim();
            current = Some(profiles.entry(name.to_owned()).or_default());
        } else if !is_block
            && !line.starts_with(['#', ';'])
            && let Some(profile) = &mut current
            && let Some((name, value)) = line.split_once('=')
        {
            profile.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_cannot_be_read_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        assert!(read(&[missing]).unwrap().is_empty());
        let path = folder.path().join("config");
        fs::write(&path, b"[default]\nregion = \xff\n").unwrap();
        let error = read(std::slice::from_ref(&path)).unwrap_err();
        assert_eq!(error.file(), path.display().to_string());
    }

    #[test]
    fn profiles_are_those_of_both_files() {
        let mut profiles = Profiles::new();
        add(
            &mut profiles,
            "[default]\nregion = eu-1\n[profile site]\nendpoint_url=https://host\ns3 =\n  region = none\n\
             [sso-session site]\nregion = sso\n[services local]\nendpoint_url = none\n",
        );
        add(
            &mut profiles,
            "# keys\n[site]\naws_access_key_id = a\naws_secret_access_key = b=\n[other]\nrole_arn = r\n",
        );
        assert_eq!(
            profiles.keys().collect::<Vec<_>>(),
            ["default", "other", "site"]
        );
        let found = settings(&profiles["site"]);
        assert_eq!(
            found,
            [
                (AmazonS3ConfigKey::AccessKeyId, "a".to_owned()),
                (AmazonS3ConfigKey::SecretAccessKey, "b=".to_owned()),
                (AmazonS3ConfigKey::Endpoint, "https://host".to_owned()),
            ]
        );
    }
}
