// `adit admin user`.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openBrowser, PASSWORD, signIn } from '../../support/accounts/users.ts'
import { engines } from '../../support/databases/create.ts'
import { pluck } from '../../support/pluck.ts'
import { assertFailed, createOperator } from '../../support/processes/commands.ts'
import { run, startServing } from '../../support/processes/process.ts'

for (const engine of engines)
  test(`${engine}: users are invited, listed, reset, disabled and enabled`, async (t) => {
    const { env, adit, json } = await createOperator(t, engine)
    await adit('workspace', 'create', 'acme')
    const invitation = await adit(
      'user',
      'invite',
      'Ann@Example.com',
      '--workspace',
      'acme',
      '--role',
      'owner',
    )
    assert.match(invitation.stdout, /^http:\/\/127\.0\.0\.1:8080\/link#[\w-]{43}\n$/, 'only the link')
    assert.match(invitation.stderr, /Created a link for ann@example.com to join workspace "acme" as owner/)
    assert.match(
      invitation.stderr,
      /ADIT_BASE_URL is not set, so the link starts with http:\/\/127\.0\.0\.1:8080\. If users reach/,
    )
    const invited = await json('user', 'invite', 'ann@example.com', '--workspace', 'acme', '--role', 'owner')
    assert.deepEqual(Object.keys(invited), ['email', 'workspace', 'role', 'link', 'expiresAt'])

    const configured = { ...env, ADIT_BASE_URL: 'https://adit.example.com' }
    const args = ['admin', 'user', 'invite', 'bob@example.com', '--workspace', 'acme', '--role', 'member']
    const forBob = await run(t, args, configured)
    assert.match(forBob.stdout, /^https:\/\/adit\.example\.com\/link#/)
    assert.ok(!forBob.stderr.includes('ADIT_BASE_URL'))
    const local = await run(t, args, { ...env, ADIT_BASE_URL: 'http://localhost:8080' })
    assert.match(
      local.stderr,
      /works on this machine only, because ADIT_BASE_URL is http:\/\/localhost:8080\./,
    )

    const { url } = await startServing(t, env)
    const ann = openBrowser(url)
    const read = (link: string) => ann.post('/links/read', { link: link.trim().split('#')[1] })
    assert.equal((await read(invitation.stdout)).status, 404, 'a newer link replaces an older one')
    const use = { link: invited.link.split('#')[1], name: 'Ann', password: PASSWORD }
    assert.equal((await ann.post('/links/redeem', use)).status, 200)
    const [listed] = await json('user', 'list')
    assert.deepEqual(
      [listed.email, listed.workspaces],
      ['ann@example.com', [{ slug: 'acme', role: 'owner' }]],
    )
    assert.match((await adit('user', 'list')).stdout, /ann@example\.com +Ann +acme \(owner\) +\S+ +active\n$/)

    const begun = await ann.post('/account/two-factor', { password: PASSWORD })
    assert.equal(begun.status, 200, begun.text)
    const reset = await json('user', 'reset', 'ann@example.com', '--two-factor')
    assert.equal((await read(reset.link)).json.purpose, 'reset')
    const unconfirmed = await adit('user', 'revoke', 'ann@example.com')
    assertFailed(unconfirmed, 2, /is the only owner of workspace acme\. Confirm with --yes\./)
    assert.equal((await ann.get('/session')).status, 200)
    assert.deepEqual(await json('user', 'revoke', 'ann@example.com', '--yes'), {
      email: 'ann@example.com',
      disabled: true,
    })
    assert.equal((await ann.get('/session')).status, 401)
    assert.match((await adit('user', 'list')).stdout, /disabled \d{4}/)
    const late = await adit('user', 'reset', 'ann@example.com')
    assertFailed(late, 1, /Enable the account with `adit admin user restore` first/)
    for (let time = 0; time < 2; time++) await json('user', 'restore', 'ann@example.com')
    assert.equal((await signIn(ann, 'ann@example.com')).status, 200)
    const { entries } = (await ann.get('/workspaces/acme/audit')).json
    const acts = pluck(entries, 'action')
    for (const action of [
      'user.enabled',
      'user.disabled',
      'user.two-factor-reset',
      'user.reset-link-created',
    ])
      assert.equal(acts.filter((act: string) => act === action).length, 1, action)

    const cases: [args: string[], code: number, message: RegExp][] = [
      [
        ['user', 'invite', 'ann@example.com', '--workspace', 'acme', '--role', 'admin'],
        1,
        /already a member of workspace "acme"/,
      ],
      [
        ['user', 'invite', 'x', '--workspace', 'acme', '--role', 'admin'],
        2,
        /email must be an email address/,
      ],
      [
        ['user', 'invite', 'x@example.com', '--workspace', 'acme', '--role', 'king'],
        2,
        /Invalid --role "king" \(expected member, admin, owner\)/,
      ],
      [
        ['user', 'invite', 'x@example.com', '--workspace', 'nope', '--role', 'admin'],
        1,
        /There is no workspace "nope"/,
      ],
      [['user', 'reset', 'x@example.com'], 1, /No user with the address/],
      [['user', 'revoke', 'x@example.com'], 1, /No user with the address/],
    ]
    for (const [args, code, message] of cases) {
      const result = await adit(...args)
      assert.deepEqual([result.code, result.stdout], [code, ''], args.join(' '))
      assert.match(result.stderr, message)
    }
  })
