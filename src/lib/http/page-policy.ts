// The Content-Security-Policy of the pages that are built with the program.
import { randomBytes } from 'node:crypto'

/**
 * The HTML of a page and its policy, which go together: the component library inserts styles at run time, and
 * a nonce allows them. Images of bodies and codes are data. `ownTargets`: the page has a base URL and forms.
 */
export function withPolicy(html: string, ownTargets: boolean): { html: string; policy: string } {
  const nonce = randomBytes(16).toString('base64url')
  const targets = ownTargets ? "'self'" : "'none'"
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    `base-uri ${targets}`,
    `form-action ${targets}`,
    "frame-ancestors 'none'",
  ].join('; ')
  return { html: html.replace('__CSP_NONCE__', nonce), policy }
}
