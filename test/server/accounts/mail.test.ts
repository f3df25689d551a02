// Emails, sent through a real mail server.
import assert from 'node:assert/strict'
import { type IncomingMessage, request } from 'node:http'
import { test } from 'node:test'
import { mailTo, startMailServer } from '../../support/accounts/mail-server.ts'
import { addMember, openBrowser, PASSWORD, serveWithOwner, signIn } from '../../support/accounts/users.ts'
import { serve } from '../../support/api/server.ts'
import { readRows } from '../../support/databases/rows.ts'
import { pluck } from '../../support/pluck.ts'
import { freePort } from '../../support/processes/ports.ts'
import { until } from '../../support/until.ts'

const linkIn = (text: string) => /\/link#([\w-]{43})/.exec(text)?.[1] as string

test('an invitation is sent to its address only, and not shown in the response', async (t) => {
  const { emails, env } = await startMailServer(t)
  const { server, ann } = await serveWithOwner(t, {
    engine: 'sqlite',
    env: { ...env, ADIT_BASE_URL: 'https://adit.example.com' },
  })
  const { status, json } = await ann.post('/workspaces/acme/invitations', {
    email: 'bob@example.com',
    role: 'member',
  })
  assert.deepEqual([status, json.link], [201, null])
  const [email] = emails
  assert.equal(email?.to, 'bob@example.com')
  assert.match(email?.text as string, /Subject: Invitation to a workspace on Adit\r\n/)
  assert.match(email?.text as string, /Workspace: Acme\r\nInvited by: Ann\r\n/)
  assert.match(email?.text as string, /https:\/\/adit\.example\.com\/link#/)
  const next = [
    'open a tunnel to port 3000:',
    '',
    'curl -fsSL https://adit.example.com/install.sh | sh && export PATH="$HOME/.local/bin:$PATH"',
    'adit login https://adit.example.com',
    'adit tunnel 3000',
  ]
  assert.ok(email?.text.includes(next.join('\r\n')), email?.text)
  const bob = openBrowser(server.url, 'https://adit.example.com')
  const used = await bob.post('/links/redeem', {
    link: linkIn(email?.text as string),
    name: 'Bob',
    password: 'a good password of Bob',
  })
  assert.equal(used.status, 200)
})

test('a password is reset by mail; an unknown address gets the same response and no mail', async (t) => {
  const { emails, env } = await startMailServer(t)
  const server = await serve(t, { engine: 'sqlite', env })
  const { email } = await addMember(server, 'Ann', 'owner')
  const browser = openBrowser(server.url)
  assert.deepEqual((await browser.get('/sign-in')).json, { isSignedIn: false, sso: null, resetByMail: true })
  const [known, unknown] = [
    await browser.post('/sign-in/forgot-password', { email }),
    await browser.post('/sign-in/forgot-password', { email: 'unknown@example.com' }),
  ]
  assert.deepEqual([known.status, known.text], [unknown.status, unknown.text])
  await until('the mail', () => emails.length > 0)
  assert.deepEqual(pluck(emails, 'to'), [email])
  const link = linkIn(emails[0]?.text as string)
  assert.equal((await browser.post('/links/redeem', { link, password: 'a new password of Ann' })).status, 200)
  assert.equal((await signIn(openBrowser(server.url), email, 'a new password of Ann')).status, 200)
  for (let round = 0; round < 2; round++) await browser.post('/sign-in/forgot-password', { email })
  assert.equal(
    (await browser.post('/sign-in/forgot-password', { email })).status,
    429,
    'no further mail is sent',
  )
})

test('a forged Host with a matching Origin does not change the link of a password reset', async (t) => {
  const { emails, env } = await startMailServer(t)
  const server = await serve(t, { engine: 'sqlite', env })
  const { email } = await addMember(server, 'Ann', 'owner')
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const headers = {
    host: 'evil.example',
    origin: 'http://evil.example',
    'x-forwarded-host': 'evil.example',
    'content-type': 'application/json',
  }
  request(`${server.url}/dashboard/api/sign-in/forgot-password`, { method: 'POST', headers }, resolve)
    .on('error', reject)
    .end(JSON.stringify({ email }))
  assert.equal((await promise).statusCode, 200)
  await until('the mail', () => emails.length > 0)
  const text = emails[0]?.text as string
  assert.ok(text.includes(`${server.url}/link#`), text)
  assert.ok(!text.includes('evil.example'), text)
})

test('without a mail server there is no reset by mail; an invitation that cannot be mailed has a link to share', async (t) => {
  const without = await serve(t, { engine: 'sqlite' })
  assert.equal(
    (await openBrowser(without.url).post('/sign-in/forgot-password', { email: 'a@example.com' })).status,
    404,
  )
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite', env: mailTo(await freePort()) })
  const { status, json } = await ann.post('/workspaces/acme/invitations', {
    email: 'b@example.com',
    role: 'member',
  })
  assert.equal(status, 201)
  const bob = openBrowser(server.url)
  const secret = json.link.split('#')[1]
  assert.equal(
    (await bob.post('/links/redeem', { link: secret, name: 'Bob', password: PASSWORD })).status,
    200,
  )
  const [user] = await readRows(server.services, 'users', { email: 'b@example.com' })
  assert.equal(user?.email_verified, 0, 'a link that others have seen proves nothing')
})

test('an invitation contains no sender text that mail programs turn into a link', async (t) => {
  const { emails, env } = await startMailServer(t)
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite', env })
  for (const [index, name] of [
    'http://evil.example/prize',
    'Win at www.evil.example',
    'evil.example',
    'help@evil.example',
    'evil。example',
    'evil．example',
    '\\\\evil.example\\share',
    'mailto:help',
  ].entries()) {
    assert.equal((await ann.post('/account/name', { name })).status, 200, name)
    await server.services.store.transaction((db) => db.updateTable('workspaces').set({ name }).execute())
    emails.length = 0
    const invited = await ann.post('/workspaces/acme/invitations', {
      email: `bob${index}@example.com`,
      role: 'member',
    })
    assert.equal(invited.status, 201, invited.text)
    const lines = emails[0]?.text.split('\r\n') ?? []
    assert.ok(lines.includes('Subject: Invitation to a workspace on Adit'), name)
    assert.equal(lines.filter((line) => /^(Workspace|Invited by): \S/.test(line)).length, 2, name)
    for (const line of lines.filter((text) => /^(Workspace|Invited by): /.test(text)))
      assert.doesNotMatch(line.replace(/^[\w ]+: /, ''), /\S[.:/\\@\u3002\uff0e]\S|=[0-9A-F]{2}/, name)
  }
})

test('an address gets at most 5 reset links in 24 hours, across nodes and restarts', async (t) => {
  const { emails, env } = await startMailServer(t)
  let now = Date.now()
  const server = await serve(t, { engine: 'sqlite', env, clock: () => now })
  const { email } = await addMember(server, 'Ann', 'owner')
  const requestReset = () => openBrowser(server.url).post('/sign-in/forgot-password', { email })
  const links = () => server.services.store.db.selectFrom('links').where('purpose', '=', 'reset').selectAll()
  // The in-memory counters of a node expire after 15 minutes, and with a restart.
  for (let round = 1; round <= 5; round++) {
    assert.equal((await requestReset()).status, 200)
    await until('the mail', () => emails.length === round)
    now += 16 * 60_000
  }
  assert.equal((await requestReset()).status, 200, 'the response is the same')
  now += 16 * 60_000
  assert.equal((await requestReset()).status, 200)
  await openBrowser(server.url).get('/sign-in')
  assert.deepEqual([emails.length, (await links().execute()).length], [5, 5])
  const link = linkIn(emails.at(-1)?.text as string)
  assert.equal((await openBrowser(server.url).post('/links/read', { link })).status, 200, 'the last works')
  now += 24 * 60 * 60_000
  await requestReset()
  await until('the mail of the next day', () => emails.length === 6)
})
