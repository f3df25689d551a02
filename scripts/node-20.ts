// What Node 20 does not have: the bundle of the client calls these instead.

export function withResolvers<T>() {
  let resolve: PromiseWithResolvers<T>['resolve'] = () => {}
  let reject: PromiseWithResolvers<T>['reject'] = () => {}
  const promise = new Promise<T>((onResolved, onRejected) => {
    resolve = onResolved
    reject = onRejected
  })
  return { promise, resolve, reject }
}

export function groupBy<T, K>(items: Iterable<T>, toKey: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>()
  for (const item of items) {
    const key = toKey(item)
    const group = groups.get(key)
    if (group) group.push(item)
    else groups.set(key, [item])
  }
  return groups
}

export const parseUrl = (text: string): URL | null => (URL.canParse(text) ? new URL(text) : null)
