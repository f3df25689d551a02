// The list of common passwords, loaded when it is first needed.
import assert from 'node:assert/strict'
import { registerHooks } from 'node:module'
import { test } from 'node:test'
import { loadCommonPasswords } from '../../src/domain/passwords.ts'

test('loading the list of common passwords is retried after a failure', async (t) => {
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
