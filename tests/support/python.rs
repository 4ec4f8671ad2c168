//! Real applications: uvicorn with Starlette, in a venv that is made once below target/.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::fs::FlockOperation;

use super::process::Process;
use super::proxy::{after, socket};

/// A busy machine takes seconds to import everything.
const START: Duration = Duration::from_secs(60);

/// A running uvicorn; killed when dropped.
pub struct Uvicorn {
    process: Process,
    addr: SocketAddr,
}

impl Uvicorn {
    /// Serves an application of `tests/support/apps/app.py`: `app`, or `squeezed`, which compresses.
    #[track_caller]
    pub fn start(app: &str) -> Self {
        Self::with(app, &[])
    }

    /// The same with more of uvicorn's options.
    #[track_caller]
    pub fn with(app: &str, options: &[&str]) -> Self {
        let apps = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/apps");
        let mut command = Command::new(python());
        command
            .args(["-B", "-m", "uvicorn", &format!("app:{app}"), "--app-dir"])
            .arg(apps);
        command
            .args(["--host", "127.0.0.1", "--port", "0", "--no-access-log"])
            .args(options);
        let served = Process::spawn("uvicorn", &mut command).and_then(|process| {
            let url = process.wait_for("its address", START, |line| after(line, "running on "))?;
            let addr = socket(&url).ok_or_else(|| format!("uvicorn: no address in {url}"))?;
            Ok(Self { process, addr })
        });
        served.unwrap_or_else(|sentence| panic!("{sentence}"))
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// As the configuration's `servers` names it.
    pub fn server(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The process: memory, CPU time.
    pub fn process(&self) -> &Process {
        &self.process
    }
}

/// The interpreter of the venv that has what `requirements.txt` names.
pub fn python() -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| {
        venv("tests/support/requirements.txt").unwrap_or_else(|sentence| panic!("{sentence}"))
    })
}

/// The interpreter of a venv that has what this file names; made once, below target/.
pub fn venv(requirements: &str) -> Result<PathBuf, String> {
    let requirements = Path::new(env!("CARGO_MANIFEST_DIR")).join(requirements);
    let folder = made_once("python", &[&requirements], |folder| {
        let home = folder.join("venv");
        make(&home, &home.join("bin/python"), &requirements)
    })?;
    Ok(folder.join("venv/bin/python"))
}

/// A folder that `make` fills, made again when one of these files is another; processes wait for each other.
pub fn made_once(
    name: &str,
    of: &[&Path],
    make: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let mut crc = flate2::Crc::new();
    for file in of {
        let content = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        crc.update(&content);
    }
    // A sibling of target/tmp, so that it lasts.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("a target folder");
    let folder = target.join(format!("{name}-{:08x}", crc.sum()));
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(failed)?;
    let lock = File::create(folder.join("lock")).map_err(failed)?;
    // Given back when the file is closed, however this process ends.
    rustix::fs::flock(&lock, FlockOperation::LockExclusive)
        .map_err(|error| failed(error.into()))?;
    let ready = folder.join("ready");
    if !ready.exists() {
        make(&folder)?;
        fs::write(&ready, "").map_err(failed)?;
    }
    Ok(folder)
}

fn make(home: &Path, python: &Path, requirements: &Path) -> Result<(), String> {
    let mut create = Command::new("python3");
    let made = run(create.args(["-m", "venv", "--clear"]).arg(home));
    made.map_err(|said| {
        format!("these tests need python3 with venv; run ./tests/run, which installs or names it: {said}")
    })?;
    let mut install = Command::new(python);
    install.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
    ]);
    let installed = run(install.arg("--requirement").arg(requirements));
    installed.map_err(|said| format!("pip cannot install {}: {said}", requirements.display()))
}

/// Runs a command to its end; what it said where it failed.
pub fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let (out, err) = (output.stdout, output.stderr);
    Err(format!(
        "{}{}",
        String::from_utf8_lossy(&out),
        String::from_utf8_lossy(&err)
    ))
}
