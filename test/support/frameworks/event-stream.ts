// Server-sent events in a browser.
import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'

/** The local server of the page sends the second event after a POST, so only after the first has arrived. */
export async function assertEventStream(page: Page): Promise<void> {
  const received = await page.evaluate(`new Promise((resolve) => {
    const received = []
    const source = new EventSource('/events')
    source.onmessage = ({ data }) => {
      if (received.push(data) === 1) return fetch('/events', { method: 'POST' })
      source.close()
      resolve(received)
    }
  })`)
  assert.deepEqual(received, ['first', 'second'])
}
