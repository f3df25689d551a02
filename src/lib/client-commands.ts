// How a user installs the client and uses it with one server. Emails and the dashboard show these commands.

/** The port of the application in examples. */
export const LOCAL_PORT = 3000

/** Quotes an argument for a POSIX shell: the URL of a server may contain a quote. */
export const shellQuote = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`

/** For the shell in which the client was installed; others read it from the profile of the user. */
export const EXTEND_PATH = 'export PATH="$HOME/.local/bin:$PATH"'

/** `url`: the public URL of the server. */
export const clientCommands = (url: string) => ({
  install: `curl -fsSL ${shellQuote(`${url}/install.sh`)} | sh && ${EXTEND_PATH}`,
  /** Without a key: `adit login` creates one in the browser or prompts for it. */
  login: `adit login ${shellQuote(url)}`,
  /** Without a name: every user gets the same commands, and a name can have one tunnel. */
  tunnel: `adit tunnel ${LOCAL_PORT}`,
})
