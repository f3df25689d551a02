// Cleanup in reverse order when a test ends: a server before its database.
import { after } from 'node:test'

/** The context of a test, or `{ after }` of `node:test` for a whole file. */
export interface Test {
  after(act: () => unknown): void
}

const stacks = new WeakMap<Test, AsyncDisposableStack>()
const inBackground = new WeakSet<Test>()
const pending: Promise<void>[] = []

export function atEnd(t: Test, act: () => unknown): void {
  let stack = stacks.get(t)
  if (!stack) {
    const created = new AsyncDisposableStack()
    stack = created
    stacks.set(t, stack)
    t.after(() => {
      const cleaned = created.disposeAsync()
      if (!inBackground.has(t)) return cleaned
      pending.push(cleaned)
    })
  }
  stack.defer(async () => {
    await act()
  })
}

/**
 * The next test starts during the cleanup of this one. A server in this process waits half a second for idle
 * connections.
 */
export function cleanUpInBackground(t: Test): void {
  inBackground.add(t)
}

after(() => Promise.all(pending))
