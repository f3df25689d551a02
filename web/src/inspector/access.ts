// Access to the local API: the token of the link, which works once, is exchanged for a bearer. sessionStorage
// keeps it, so that no other origin, tab or port of this machine gets it.
import { API, type ApiError, type Session, type SessionRequest } from '../../../src/inspector/api.ts'

export type Access =
  | 'checking'
  | 'granted'
  /** Opened without a link. */
  | 'no-link'
  | 'link-used'
  /** The program was started again, or many other pages were opened. */
  | 'expired'
  /** The connection was lost, and something else has the port of the program now. */
  | 'ended'
  /** The program does not run. */
  | 'unreachable'

const BEARER = 'adit.inspector.bearer'
const TOKEN = /^#token=([\w-]+)$/

let access: Access = sessionStorage.getItem(BEARER) === null ? 'no-link' : 'granted'
const listeners = new Set<() => void>()

function set(next: Access): void {
  access = next
  for (const notify of listeners) notify()
}

export const getAccess = (): Access => access
export const readBearer = (): string | null => sessionStorage.getItem(BEARER)

export function subscribeAccess(notify: () => void): () => void {
  listeners.add(notify)
  return () => listeners.delete(notify)
}

let isConnectionLost = false
export function setConnectionLost(isLost: boolean): void {
  isConnectionLost = isLost
}

/** The API rejected the bearer. What is loaded stays on the page if it is of a program that has ended. */
export function loseAccess(): void {
  sessionStorage.removeItem(BEARER)
  set(isConnectionLost ? 'ended' : 'expired')
}

async function exchangeToken(token: string): Promise<void> {
  set('checking')
  const body: SessionRequest = { token }
  const response = await fetch(API.session, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }).catch(() => undefined)
  if (!response) return set('unreachable')
  if (!response.ok) {
    const { error } = (await response.json().catch(() => ({}))) as Partial<ApiError>
    // A link that was opened twice in this tab: its first use still counts.
    if (error === 'token_used' && readBearer() !== null) return set('granted')
    return set('link-used')
  }
  const { bearer } = (await response.json()) as Session
  sessionStorage.setItem(BEARER, bearer)
  set('granted')
}

/** Takes the token out of the address, so that it is in no history and no bookmark. */
function takeToken(): void {
  const token = TOKEN.exec(location.hash)?.[1]
  if (token === undefined) return
  history.replaceState(null, '', location.pathname)
  void exchangeToken(token)
}

takeToken()
// A new link that is pasted into this tab changes only the fragment.
addEventListener('hashchange', takeToken)
