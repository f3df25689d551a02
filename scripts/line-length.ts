// Documents and comments have lines of at most 110 characters, which the formatter does not check. With
// --fix, a line that is too long is wrapped, together with the rest of its paragraph.
import { globSync, readFileSync, writeFileSync } from 'node:fs'

const LENGTH_MAX = 110
const root = new URL('..', import.meta.url)
const isLong = (line: string) => [...line].length > LENGTH_MAX

interface Syntax {
  /** Whether the rule applies to a line. */
  checks(line: string): boolean
  /** What a line begins with, before the text that can be wrapped. */
  prefix: RegExp
  /** What the other lines of a paragraph begin with. */
  continuation(prefix: string): string
}

const document: Syntax = {
  checks: (line) => !/^\s*\||!\[/.test(line),
  prefix: /^\s*(?:(?:[-*+]|\d+\.|>) )*/,
  continuation: (prefix) => prefix.replaceAll(/[^\s>]/g, ' '),
}
const comments: Syntax = {
  checks: (line) => /^\s*(\/\/|\/?\*)/.test(line),
  prefix: /^\s*(?:\/\/|\*) (?! )/,
  continuation: (prefix) => prefix,
}
/** A word that begins a list, a heading or a quotation if it is the first of a line. */
const MARKER = /^([-*+>]|#+|\d+[.)])$/

/** Code spans are not broken. */
function splitWords(text: string): string[] {
  const words: string[] = []
  for (const word of text.match(/(?:`[^`]*`|\S)+/g) ?? [])
    if (MARKER.test(word) && words.length > 0) words.push(`${words.pop()} ${word}`)
    else words.push(word)
  return words
}

function wrap(text: string, prefix: string, continuation: string): string[] {
  const lines: string[] = []
  let line = prefix
  for (const word of splitWords(text)) {
    const longer = line.endsWith(' ') || line === '' ? line + word : `${line} ${word}`
    if (isLong(longer)) lines.push(line.trimEnd())
    line = isLong(longer) ? continuation + word : longer
  }
  return [...lines, line]
}

/** A comment of one line that is too long gets lines of its own for its start and end. */
function expandComment(line: string): string[] {
  const [, indent, text] = /^( *)\/\*\* (.+) \*\/$/.exec(line) ?? []
  return isLong(line) && text ? [`${indent}/**`, `${indent} * ${text}`, `${indent} */`] : [line]
}

function fix(text: string, syntax: Syntax): string {
  const lines = text.split('\n').flatMap(expandComment)
  for (let index = 0, isCode = false; index < lines.length; index++) {
    const line = lines[index] ?? ''
    if (syntax === document && /^\s*```/.test(line)) isCode = !isCode
    const prefix = syntax.prefix.exec(line)?.[0]
    if (isCode || prefix === undefined || !isLong(line) || !syntax.checks(line)) continue
    const continuation = syntax.continuation(prefix)
    const isRest = (next = '') =>
      next.startsWith(continuation) && /^[^\s|#*/-](?!\. )/.test(next.slice(continuation.length))
    let end = index + 1
    while (isRest(lines[end])) end++
    const paragraph = lines.slice(index, end).map((each) => each.slice(prefix.length))
    lines.splice(index, end - index, ...wrap(paragraph.join(' '), prefix, continuation))
  }
  return lines.join('\n')
}

const files = {
  document: globSync(['*.md', '{docs,src,deploy}/**/*.md'], { cwd: root }),
  comments: globSync('{bin,src,test,bench,scripts,web,docs}/**/*.{ts,tsx,js}', {
    cwd: root,
    exclude: ['web/dist/**'],
  }),
}
for (const [names, syntax] of [
  [files.document, document],
  [files.comments, comments],
] as const)
  for (const file of names) {
    const url = new URL(file, root)
    const text = readFileSync(url, 'utf8')
    const checked = process.argv.includes('--fix') ? fix(text, syntax) : text
    if (checked !== text) writeFileSync(url, checked)
    for (const [index, line] of checked.split('\n').entries()) {
      if (!isLong(line) || !syntax.checks(line)) continue
      process.stderr.write(
        `${file}:${index + 1}: ${[...line].length} characters, at most ${LENGTH_MAX}. Run npm run fix.\n`,
      )
      process.exitCode = 1
    }
  }
