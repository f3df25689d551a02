// Why there is nothing to talk to: in words for whoever starts the program, with the setting to look at.

export class StartupError extends Error {
  override name = 'StartupError'
  readonly what: 'database' | 'address' | 'secret'

  constructor(what: StartupError['what'], message: string, cause: unknown) {
    super(message, { cause })
    this.what = what
  }
}

/** An error that several attempts add up to has a code and no words. */
export const errorMessage = (error: unknown): string => {
  const { message, code } = error as { message?: string; code?: string }
  return message || code || String(error)
}
