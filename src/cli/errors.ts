// Errors that a command can end with. run.ts maps each class to an exit code.

/** Matches API keys and parts of them, but not ids, which are shorter. */
const SECRET = /adit_\w{8,}|\w{40,}/g

/** The command line is wrong. The message may quote it, but not a key that was given as an argument. */
export class UsageError extends Error {
  override name = 'UsageError'

  constructor(message: string) {
    super(message.replaceAll(SECRET, '(not shown)'))
  }
}

/** The command failed; the message says why and what to do. */
export class CommandError extends Error {
  override name = 'CommandError'
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/** The API key is missing, or the server rejects it. */
export class NotAuthenticated extends Error {
  override name = 'NotAuthenticated'
}
