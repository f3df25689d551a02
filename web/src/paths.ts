// Where the page is served: at the root of a host or below a path, which <base> tells.
const base = new URL(document.baseURI)

/** `''` or `/adit`; routes of the page are relative to it. */
export const prefix = base.pathname.replace(/\/+$/, '')
export const apiRoot = `${prefix}/dashboard/api`
export const docsUrl = `${prefix}/docs`
export const apiBaseUrl = `${base.origin}${prefix}/api/v1`

const RETURN_TO = 'adit.return-to'
const LAST_WORKSPACE = 'adit.workspace'

/** Kept in this tab rather than in the address, so that no link from elsewhere can choose it. */
export const saveReturnPath = (path: string): void => sessionStorage.setItem(RETURN_TO, path)

export function returnPath(): string | null {
  const path = sessionStorage.getItem(RETURN_TO)
  return path?.startsWith('/') && !path.startsWith('//') ? path : null
}

export const clearReturnPath = (): void => sessionStorage.removeItem(RETURN_TO)

export const saveLastWorkspace = (slug: string): void => localStorage.setItem(LAST_WORKSPACE, slug)
export const lastWorkspace = (): string | null => localStorage.getItem(LAST_WORKSPACE)

/** This page's own path and query, without the prefix. */
export const currentPath = (): string =>
  location.pathname.slice(prefix.length).replace(/^\/*/, '/') + location.search
