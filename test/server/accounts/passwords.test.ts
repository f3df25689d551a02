// The list of common passwords, loaded when it is first needed.
import assert from 'node:assert/strict'
import { registerHooks } from 'node:module'
import { test } from 'node:test'

/** A copy of the module that has loaded nothing yet. */
const unloaded = '../../../src/server/domain/accounts/passwords.ts?unloaded'

test('loading the list of common passwords is retried after a failure', async (t) => {
  const { loadCommonPasswords } = await import(unloaded)
  let failures = 1
  const hooks = registerHooks({
    resolve(specifier, context, next) {
      if (specifier === '@zxcvbn-ts/language-common' && failures-- > 0) throw new Error('too many open files')
      return next(specifier, context)
    },
  })
  t.after(() => hooks.deregister())
  await assert.rejects(loadCommonPasswords(), /too many open files/)
  assert.ok((await loadCommonPasswords()).has('password'))
})
