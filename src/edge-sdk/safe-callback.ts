// What the embedding program gives us to call is called with care: should it throw, that is its own trouble, told as a
// warning of the process, and not the end of what called it.

export function safeCallback<A extends unknown[]>(callback: ((...given: A) => unknown) | undefined) {
  return (...given: A): void => {
    try {
      const result = callback?.(...given)
      if (result instanceof Promise) result.catch(warn)
    } catch (error) {
      warn(error)
    }
  }
}

const warn = (error: unknown) => process.emitWarning(error instanceof Error ? error : String(error))
