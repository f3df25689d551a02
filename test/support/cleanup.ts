// What a test sets up is taken down when it ends, the last thing first: a server before its database.
import type { TestContext } from 'node:test'

export type Test = Pick<TestContext, 'after'>

const stacks = new WeakMap<Test, AsyncDisposableStack>()

export function atEnd(t: Test, act: () => unknown): void {
  let stack = stacks.get(t)
  if (!stack) {
    const created = new AsyncDisposableStack()
    stack = created
    stacks.set(t, stack)
    t.after(() => created.disposeAsync())
  }
  stack.defer(async () => {
    await act()
  })
}
