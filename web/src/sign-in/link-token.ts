// The token of a link stands after #, where no server sees it; once read it is out of the address bar and history, and
// kept in memory only.

let taken: string | undefined

/** Read once: React may ask twice, and by then the address bar is clean. Empty after the page was loaded again. */
export function readLinkToken(): string {
  if (location.hash.length > 1) {
    taken = location.hash.slice(1)
    history.replaceState(history.state, '', location.pathname)
  }
  return taken ?? ''
}
