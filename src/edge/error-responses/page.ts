// The page that a browser shows for an error of the edge: one file without scripts and external resources.
import { hash } from 'node:crypto'
import { escapeHtml } from '../../lib/html.ts'
import type { Cause } from './causes.ts'

/** The colors of the dashboard. */
const STYLE = `
:root{color-scheme:light dark;--text:#1b2430;--dim:#566272;--back:#f6f7f9;--card:#fff;--line:#dfe3e8}
@media(prefers-color-scheme:dark){
:root{--text:#dbe1e8;--dim:#b0bac6;--back:#0e1319;--card:#161d26;--line:#2b3642}}
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,sans-serif;margin:0;padding:12vh 1rem 2rem;color:var(--text);background:var(--back);
overflow-wrap:anywhere}
main{max-width:34rem;margin:0 auto;padding:1.75rem;background:var(--card);border:1px solid var(--line);
border-radius:.75rem}
h1{font-size:1.5rem;line-height:1.25;margin:0 0 .75rem;text-wrap:balance}
h2{font-size:.875rem;margin:1.25rem 0 .25rem;padding-top:1.25rem;border-top:1px solid var(--line)}
p{margin:0;color:var(--dim)}p.status{font-size:.875rem;margin:0 0 .25rem}
code{font:.875em ui-monospace,monospace;color:var(--text)}
@media(max-width:30rem){body{padding-top:1rem}main{padding:1.25rem}}
`.replaceAll('\n', '')

export const CONTENT_SECURITY_POLICY =
  `default-src 'none'; style-src 'sha256-${hash('sha256', STYLE, 'base64')}'; ` +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const formatText = (text: string) => escapeHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>')

/** The page before and after the detail, which is HTML. */
export function renderPage({ status, title, visitor, owner }: Cause): [before: string, after: string] {
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8">' +
      '<meta name="viewport" content="width=device-width,initial-scale=1">' +
      `<title>${formatText(title)}</title><style>${STYLE}</style></head>` +
      `<body><main><p class="status">Error ${status}</p><h1>${formatText(title)}</h1>`,
    `<h2>What you can do</h2><p>${formatText(visitor)}</p>` +
      `<h2>If this is your tunnel</h2><p>${formatText(owner)}</p></main></body></html>\n`,
  ]
}
