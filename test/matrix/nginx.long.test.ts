// nginx as a local server: ranges of files, which browsers use for media and resumed downloads.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createFolder } from '../support/databases/create.ts'
import { browserMissing, openPage, openSites } from '../support/frameworks/public-edge.ts'
import { freePort } from '../support/processes/ports.ts'
import { nginx, runNginx } from '../support/proxies/nginx.ts'

const skip = nginx ? browserMissing : 'nginx is not installed here (apt-get install nginx)'

interface Result {
  status: number
  type: string
  range: string | null
  etag: string
  text: string
}

test('nginx serves ranges of a file through a tunnel', { skip }, async (t) => {
  const [folder, port, page] = [createFolder(t), await freePort(), await openPage(t)]
  writeFileSync(join(folder, 'digits.txt'), '0123456789'.repeat(100))
  await runNginx(t, port, `events {} http { server { listen 127.0.0.1:${port}; root ${folder}; } }`)
  for (const { url } of await openSites(t, port)) {
    await page.goto(`${url}digits.txt`)
    const get = (headers: Record<string, string>) =>
      page.evaluate<Result>(`fetch('', { headers: ${JSON.stringify(headers)}, cache: 'no-store' }).then(
        async (response) => ({
          status: response.status,
          type: response.headers.get('content-type'),
          range: response.headers.get('content-range'),
          etag: response.headers.get('etag'),
          text: await response.text(),
        }),
      )`)
    const { status, range, text, etag } = await get({ range: 'bytes=5-14' })
    assert.deepEqual([status, range, text], [206, 'bytes 5-14/1000', '5678901234'])
    const parts = await get({ range: 'bytes=0-1,10-12' })
    assert.match(parts.type, /^multipart\/byteranges; boundary=/)
    assert.match(parts.text, /bytes 0-1\/1000\r\n\r\n01\r\n[\s\S]*bytes 10-12\/1000\r\n\r\n012\r\n/)
    const resumed = await get({ range: 'bytes=990-', 'if-range': etag })
    assert.deepEqual([resumed.status, resumed.text], [206, '0123456789'])
    const changed = await get({ range: 'bytes=990-', 'if-range': '"other"' })
    assert.deepEqual([changed.status, changed.text.length], [200, 1000])
    assert.equal((await get({ range: 'bytes=2000-' })).status, 416)
  }
})
