// Which request is selected: its id is the fragment of the address, so that Back returns to the list.
import { useSyncExternalStore } from 'react'

const ID = /^#([a-z0-9]+-\d+)$/
const listeners = new Set<() => void>()
const notifyAll = () => {
  for (const notify of listeners) notify()
}
addEventListener('popstate', notifyAll)
addEventListener('hashchange', notifyAll)

const read = (): string | undefined => ID.exec(location.hash)?.[1]

function subscribe(notify: () => void): () => void {
  listeners.add(notify)
  return () => listeners.delete(notify)
}

export function select(id: string | undefined): void {
  const address = id === undefined ? location.pathname : `#${id}`
  // Moving through the list is one step of the history.
  if (read() === undefined) history.pushState(null, '', address)
  else history.replaceState(null, '', address)
  notifyAll()
}

export const useSelection = (): string | undefined => useSyncExternalStore(subscribe, read)
