// Isolates callbacks of the embedding program: an exception becomes a process warning instead of stopping the
// SDK.

export function safeCallback<A extends unknown[]>(callback: ((...args: A) => unknown) | undefined) {
  return (...args: A): void => {
    try {
      const result = callback?.(...args)
      if (result instanceof Promise) result.catch(warn)
    } catch (error) {
      warn(error)
    }
  }
}

export const warn = (error: unknown) => process.emitWarning(error instanceof Error ? error : String(error))
