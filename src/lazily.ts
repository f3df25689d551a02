/** Loads something once, when it is first needed; after a failure, the next call tries again. */
export function lazily<T>(load: () => Promise<T>): () => Promise<T> {
  let loaded: Promise<T> | undefined
  return () => {
    loaded ??= load().catch((error) => {
      loaded = undefined
      throw error
    })
    return loaded
  }
}
