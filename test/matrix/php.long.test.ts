// The built-in server of PHP behind a tunnel. It ends responses by closing the connection.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { startApp } from '../support/frameworks/apps.ts'
import { assertForms } from '../support/frameworks/forms.ts'
import { browserMissing, openPage, openSites } from '../support/frameworks/public-edge.ts'

const hasPhp = spawnSync('php', ['--version']).status === 0
const skip = hasPhp ? browserMissing : 'PHP is not installed here (apt-get install php-cli)'

test('the server of PHP gets redirects, sessions and uploads through a tunnel right', { skip }, async (t) => {
  const command = (port: string) => ['php', '-S', `localhost:${port}`, 'index.php']
  const sites = await openSites(t, (await startApp(t, 'php', { command })).port)
  await assertForms(t, sites)
  const page = await openPage(t)
  for (const { url } of sites) {
    assert.equal((await page.goto(`${url}redirect`))?.url(), url)
    const uploaded = await page.evaluate(`(async () => {
      const body = new FormData()
      body.set('file', new Blob(['upload'.repeat(300_000)]), 'file.bin')
      return (await fetch('/upload', { method: 'POST', body })).text()
    })()`)
    assert.equal(uploaded, createHash('sha256').update('upload'.repeat(300_000)).digest('hex'))
    const statuses = await page.evaluate(
      `Promise.all(Array.from({ length: 20 }, () => fetch('/').then(({ status }) => status)))`,
    )
    assert.deepEqual(statuses, Array(20).fill(200))
  }
})
