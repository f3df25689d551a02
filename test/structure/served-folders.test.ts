// Commands in documents, run as written in the folder they name, publish nothing that they should not.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { root } from '../support/processes/process.ts'

const TEXTS = [
  '*.md',
  'docs/**/*.{md,conf,ts}',
  'src/**/*.md',
  'src/cli/**/*.ts',
  'web/src/**/*.{ts,tsx}',
  'deploy/**/*',
  'scripts/**/*.ts',
]
/** Programs that serve files, most of them those of the working directory to everyone. */
const FILE_SERVER =
  /python\d? -m (http\.server|SimpleHTTPServer)|(npx|npm exec|bunx) (--\S+ )*(serve|http-server|live-server)\b|php -S|ruby -run|busybox httpd|caddy file-server/
const SERVED = /adit tunnel [^\n`']*--serve[ =]("?)([^\s"`',\\]+)\1/g

function* texts() {
  for (const file of globSync(TEXTS, { cwd: root, exclude: ['**/node_modules/**'] }))
    try {
      yield { file, text: readFileSync(join(root, file), 'utf8') }
    } catch {
      // A folder.
    }
}

/** The code blocks of a document, or the whole of another file. */
const listBlocks = (file: string, text: string): string[] =>
  file.endsWith('.md')
    ? [...text.matchAll(/^ *```\w*\n(.*?)^ *```/gms)].map(([, block = '']) => block)
    : [text]

test('documents serve folders made for it, and nothing beyond loopback', () => {
  const wrong: string[] = []
  let served = 0
  for (const { file, text } of texts())
    for (const block of listBlocks(file, text)) {
      for (const line of block.split('\n'))
        if (
          FILE_SERVER.test(line) &&
          !(/127\.0\.0\.1/.test(line) && /(--directory|-d|-t|--root) \w/.test(line))
        )
          wrong.push(`${file}: ${line.trim()}`)
      for (const [command, , folder = ''] of block.matchAll(SERVED)) {
        served += 1
        const isPlaceholder = folder === '<folder>'
        const isOwn = /^(\.\/)?public$/.test(folder)
        const isMade = file.endsWith('.md') ? block.includes('mkdir -p public') : true
        if (!isPlaceholder && !(isOwn && isMade)) wrong.push(`${file}: ${command}`)
      }
    }
  assert.deepEqual(wrong, [])
  assert.ok(served >= 4, 'found too few commands')
})

test('a server of the working directory is found, also with other flags', () => {
  for (const line of ['python3 -m http.server 3000 &', 'npx --yes serve', 'php -S 0.0.0.0:3000'])
    assert.match(line, FILE_SERVER)
})
