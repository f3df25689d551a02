// The page that lists a folder. It has no scripts, and every name is escaped.
import { escapeHtml } from '../../lib/html.ts'
import type { Entry, Listing } from './shared-folder.ts'

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB']
const STYLE = `:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 48rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.25rem; overflow-wrap: anywhere }
table { border-collapse: collapse; width: 100% }
td { padding: .375rem 0; border-top: 1px solid #8884; vertical-align: top }
td:first-child { overflow-wrap: anywhere }
td + td { padding-left: 1rem; text-align: right; white-space: nowrap; opacity: .7 }
a { color: light-dark(#0550ae, #79b8ff); text-decoration: none }
a:hover, a:focus-visible { text-decoration: underline }
@media (max-width: 30rem) { td:last-child { display: none } }`

const formatText = (text: string) => escapeHtml(text).replace(/\p{Bidi_Control}/gu, '\ufffd')

function formatSize(bytes: bigint): string {
  const unit = Math.min(Math.floor(Math.log10(Math.max(Number(bytes), 1)) / 3), UNITS.length - 1)
  const value = Number(bytes) / 1000 ** unit
  return `${unit > 0 && value < 10 ? value.toFixed(1) : Math.round(value)} ${UNITS[unit]}`
}

function row({ name, isFolder, bytes, modifiedAt }: Entry): string {
  const slash = isFolder ? '/' : ''
  // The link begins with "./", because a name with a colon would be read as a scheme.
  const link = `<a href="./${encodeURIComponent(name)}${slash}">${formatText(name)}${slash}</a>`
  const time = modifiedAt.toISOString().slice(0, 16).replace('T', ' ')
  return `<tr><td>${link}<td>${isFolder ? '' : formatSize(bytes)}<td>${time} UTC`
}

/** @param names The path of the folder below the shared folder. */
export function listingPage(names: readonly string[], { entries, isTruncated }: Listing): string {
  const title = formatText(`/${names.map((name) => `${name}/`).join('')}`)
  const parent = names.length > 0 ? '<tr><td><a href="../">../</a><td><td>' : ''
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${STYLE}</style>
<h1>${title}</h1>
<table>
${[parent, ...entries.map(row)].filter(Boolean).join('\n')}
</table>
${entries.length === 0 ? '<p>This folder is empty.</p>' : ''}${isTruncated ? '<p>There are more files.</p>' : ''}
`
}
