// The script of /install.sh, for a POSIX shell. All of it is in functions, and the last line calls them: a
// download that is cut off runs nothing.
import { clientCommands, EXTEND_PATH, shellQuote } from '../../../../lib/client-commands.ts'
import { CLIENT_NODE_MAJOR, CLIENT_PACKAGE } from '../../../../lib/client-package.ts'

/** `downloads`: SHA-256 of each file that the server has. */
export const installScript = (url: string, downloads: ReadonlyMap<string, string>): string => {
  const lines = Array.from(downloads, ([name, sum]) => `${name} ${sum}`)
  return String.raw`#!/bin/sh
# Installs the Adit client for the current user: ~/.local/bin/adit. Root is not needed.
set -eu

server=${shellQuote(url)}
# Each file with its SHA-256, which detects damaged downloads. It does not prove their origin: for that, the
# server and HTTPS are trusted.
downloads='${lines.join('\n')}'

fail() {
  printf 'adit: %s\n' "$1" >&2
  exit 1
}

checksum_of() {
  printf '%s\n' "$downloads" | sed -n "s/^$1 //p"
}

# Sets "executable" if the server has one that runs here, or "reason" to why not.
find_executable() {
  executable='' reason=''
  case "$(uname -s)/$(uname -m)" in
    Linux/x86_64 | Linux/amd64) platform=linux-x64 loader=/lib64/ld-linux-x86-64.so.2 ;;
    Linux/aarch64 | Linux/arm64) platform=linux-arm64 loader=/lib/ld-linux-aarch64.so.1 ;;
    *) platform='' loader='' ;;
  esac
  if [ -z "$platform" ] || [ -z "$(checksum_of "adit-$platform.gz")" ]; then
    reason="The server has no executable for $(uname -s) on $(uname -m)."
  elif [ ! -e "$loader" ]; then
    reason='The executable needs glibc, which this system does not have (Alpine, for example, has musl).'
  else
    executable="adit-$platform.gz"
  fi
}

require_node() {
  need="$reason So the client needs Node ${CLIENT_NODE_MAJOR} or later"
  [ -n "$(checksum_of ${CLIENT_PACKAGE}.tgz)" ] ||
    fail "$reason It has no client for Node either: ask your server admin."
  command -v node >/dev/null 2>&1 || fail "$need, which is not installed. Install Node and run this again."
  node_version=$(node --version)
  node_major=$(printf '%s' "$node_version" | sed 's/^v\([0-9]*\).*/\1/')
  [ "$node_major" -ge ${CLIENT_NODE_MAJOR} ] ||
    fail "$need, but this is Node $node_version. Install a newer Node and run this again."
}

download_failed() {
  fail "The download failed. Nothing was installed. Check that this machine can reach $server, and run this again."
}

# Downloads a file into the staging folder and compares its checksum.
download() {
  printf 'Downloading %s/install/%s\n' "$server" "$1" >&2
  if command -v curl >/dev/null 2>&1; then
    curl -fsSL -o "$staging/$1" "$server/install/$1" || download_failed
  elif command -v wget >/dev/null 2>&1; then
    wget -q -O "$staging/$1" "$server/install/$1" || download_failed
  else
    fail 'Neither curl nor wget is installed. Install one and run this again.'
  fi
  if command -v sha256sum >/dev/null 2>&1; then
    sum=$(sha256sum "$staging/$1")
  elif command -v shasum >/dev/null 2>&1; then
    sum=$(shasum -a 256 "$staging/$1")
  else
    fail 'Neither sha256sum nor shasum is installed. Install one and run this again.'
  fi
  [ "$(printf '%s' "$sum" | cut -c 1-64)" = "$(checksum_of "$1")" ] ||
    fail 'The download is damaged: its checksum is wrong. Nothing was installed. Run this again.'
}

# If it does not run, unsets "executable" and requires Node.
install_executable() {
  download "$executable"
  gzip -dc "$staging/$executable" >"$staging/adit" ||
    fail "Cannot decompress the download. Nothing was installed. It needs gzip, and 250 MB in $HOME."
  chmod 755 "$staging/adit"
  if version=$("$staging/adit" --version); then
    mkdir -p "$HOME/.local/bin"
  else
    rm "$staging/adit"
    executable=''
    reason='The executable does not run on this system: it needs glibc 2.28 or later, libstdc++ and libatomic.'
    require_node
  fi
}

install_package() {
  download ${CLIENT_PACKAGE}.tgz
  tar -xzf "$staging/${CLIENT_PACKAGE}.tgz" -C "$staging" ||
    fail 'Cannot unpack the download. Nothing was installed. It needs tar and gzip.'
  version=$(node "$staging/package/adit.js" --version) ||
    fail "The client does not run with Node $node_version. Nothing was installed. Try another version of Node."
  chmod 755 "$staging/package/adit.js"
  mkdir -p "$HOME/.local/bin" "$HOME/.local/lib"
  if [ -e "$HOME/.local/lib/${CLIENT_PACKAGE}" ]; then
    mv "$HOME/.local/lib/${CLIENT_PACKAGE}" "$staging/previous"
  fi
  mv "$staging/package" "$HOME/.local/lib/${CLIENT_PACKAGE}"
  ln -s "../lib/${CLIENT_PACKAGE}/adit.js" "$staging/adit"
}

main() {
  [ -n "${'$'}{HOME:-}" ] || fail 'HOME is not set. Set it to your home folder, and run this again.'
  find_executable
  [ -n "$executable" ] || require_node
  # In the home folder, so that files are moved to their place at once.
  staging=$(mktemp -d "$HOME/.adit-install.XXXXXX") || fail "Cannot write to $HOME."
  trap 'rm -rf "$staging"' EXIT
  trap 'exit 1' HUP INT TERM
  if [ -n "$executable" ]; then install_executable; fi
  if [ -z "$executable" ]; then install_package; fi
  mv -f "$staging/adit" "$HOME/.local/bin/adit"
  printf 'Installed adit %s: %s\n' "$version" "$HOME/.local/bin/adit"
  found=$(command -v adit || true)
  if [ "$found" != "$HOME/.local/bin/adit" ]; then
    case ":$PATH:" in
      *":$HOME/.local/bin:"*) printf 'Another adit is before it on your PATH: %s\n' "$found" ;;
      *)
        printf '%s is not on your PATH. Add it, also in the profile of your shell:\n\n' "$HOME/.local/bin"
        printf '  %s\n\n' ${shellQuote(EXTEND_PATH)}
        ;;
    esac
  fi
  printf 'Next, sign in:\n\n  %s\n' ${shellQuote(clientCommands(url).login)}
}

main
`
}
