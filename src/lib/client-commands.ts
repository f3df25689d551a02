// How a user installs the client and uses it with one server. Emails and the dashboard show these commands.

/** The port of the application in examples. */
export const LOCAL_PORT = 3000

/** For a POSIX shell: the URL of a server may contain a quote. */
export const shellQuote = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`

/** `url`: the public URL of the server. */
export const clientCommands = (url: string) => ({
  install: `curl -fsSL ${shellQuote(`${url}/install.sh`)} | sh`,
  /** It has no key: `adit login` creates one in the browser or prompts for it. */
  login: `adit login ${shellQuote(url)}`,
  /** It has no name: every user gets the same commands, and a name is that of one tunnel. */
  tunnel: `adit tunnel ${LOCAL_PORT}`,
})
