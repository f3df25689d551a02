// Why the program cannot start: for the operator, with the setting to check.

export class StartupError extends Error {
  override name = 'StartupError'
  readonly what: 'database' | 'address' | 'secret'

  constructor(what: StartupError['what'], message: string, cause: unknown) {
    super(message, { cause })
    this.what = what
  }
}

/** An AggregateError of several connection attempts has a code but no message. */
export const errorMessage = (error: unknown): string => {
  const { message, code } = error as { message?: string; code?: string }
  return message || code || String(error)
}
