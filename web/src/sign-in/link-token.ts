// The token of an invitation or reset link. It is in the URL fragment, which browsers do not send to servers;
// once read it is removed from the address bar and the history, and kept in memory only.

let token: string | undefined

/** Empty after a reload. React may call this a second time, when the fragment is gone. */
export function readLinkToken(): string {
  if (location.hash.length > 1) {
    token = location.hash.slice(1)
    history.replaceState(history.state, '', location.pathname)
  }
  return token ?? ''
}
