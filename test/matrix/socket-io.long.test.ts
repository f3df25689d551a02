// Socket.IO behind a tunnel, with its own client in a browser.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startApp } from '../support/frameworks/apps.ts'
import { openPage, openSites, browserMissing as skip } from '../support/frameworks/public-edge.ts'

const echo = (message: string) => `socket.timeout(20_000).emitWithAck('echo', '${message}')`

for (const transport of ['websocket', 'polling'])
  test(`Socket.IO connects by ${transport}, and again after its tunnel was gone`, { skip }, async (t) => {
    const app = await startApp(t, 'socket-io', { command: () => ['node', 'server.js'] })
    const sites = await openSites(t, app.port)
    const pages = await Promise.all(sites.map(() => openPage(t)))
    for (const [index, page] of pages.entries()) {
      await page.goto(sites[index]?.url ?? '')
      await page.evaluate(`globalThis.socket = io({ transports: ['${transport}'], reconnectionDelayMax: 500 });
        globalThis.lost = new Promise((resolve) => socket.once('disconnect', resolve)); undefined`)
      assert.equal(await page.evaluate(echo('one')), 'one')
    }
    await Promise.all(sites.map((site) => site.reopen()))
    for (const page of pages) {
      await page.evaluate('lost')
      assert.equal(await page.evaluate(echo('two')), 'two')
    }
  })
