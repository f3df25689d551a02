// Base path of the dashboard, the URLs derived from it, and navigation state in browser storage.
import { apiPrefix } from './api-routes.ts'

const base = new URL(document.baseURI)

/** `''`, or a path such as `/adit` that a reverse proxy strips; routes are relative to it. */
export const prefix = base.pathname.replace(/\/+$/, '')
export const apiRoot = prefix + apiPrefix
export const docsUrl = `${prefix}/docs`
export const serverUrl = `${base.origin}${prefix}`

const RETURN_TO = 'adit.return-to'
const LAST_WORKSPACE = 'adit.workspace'

/** Stored in the session, not in the URL, so that a link from another site cannot choose it. */
export const saveReturnPath = (path: string): void => sessionStorage.setItem(RETURN_TO, path)

export function returnPath(): string | null {
  const path = sessionStorage.getItem(RETURN_TO)
  return path?.startsWith('/') && !path.startsWith('//') ? path : null
}

export const clearReturnPath = (): void => sessionStorage.removeItem(RETURN_TO)

export const saveLastWorkspace = (slug: string): void => localStorage.setItem(LAST_WORKSPACE, slug)
export const lastWorkspace = (): string | null => localStorage.getItem(LAST_WORKSPACE)

/** Path and query of the current page, without the prefix. */
export const currentPath = (): string =>
  location.pathname.slice(prefix.length).replace(/^\/*/, '/') + location.search
