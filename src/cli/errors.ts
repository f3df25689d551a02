// How a command can end other than well; main.ts gives each its exit code.

/** It was called in a way that makes no sense. */
export class UsageError extends Error {
  override name = 'UsageError'
}

/** A command could not do what it was asked for; the message says why and what to do. */
export class CommandError extends Error {
  override name = 'CommandError'
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/** Nobody knows who is asking: there is no key, or none that is good. */
export class NotAuthenticated extends Error {
  override name = 'NotAuthenticated'
}
