// Signatures of webhooks, with the examples of the providers where they have published some.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import type { SignatureScheme } from '../../src/inspector/api.ts'
import { verifySignature } from '../../src/inspector/signatures/verify.ts'
import { RecordedExchange } from '../../src/inspector/store/exchange.ts'

function recorded(headers: Record<string, string>, body: string, arrivedAt = new Date()): RecordedExchange {
  const head = { method: 'POST', path: '/', httpVersion: '1.1', headers: Object.entries(headers).flat() }
  const exchange = new RecordedExchange({ name: 'app', url: '', target: '' }, head, 0)
  exchange.request.body.add(Buffer.from(body))
  exchange.request.body.isComplete = true
  return Object.assign(exchange, { startedAt: arrivedAt })
}

const hmac = (secret: string, text: string) => createHmac('sha256', secret).update(text).digest('hex')
const BODY = '{"type":"paid"}'
const ARRIVED = new Date('2026-03-01T12:00:00Z')
const seconds = (offset = 0) => String(ARRIVED.getTime() / 1000 + offset)

test('the published examples of GitHub and Slack hold', () => {
  const github = recorded(
    { 'X-Hub-Signature-256': 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17' },
    'Hello, World!',
  )
  assert.equal(verifySignature(github, 'github', "It's a Secret to Everybody").reason, 'ok')
  const slack = recorded(
    {
      'X-Slack-Request-Timestamp': '1531420618',
      'X-Slack-Signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
    },
    'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&' +
      'channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&' +
      'response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&' +
      'trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c',
    new Date(1_531_420_620_000),
  )
  assert.equal(verifySignature(slack, 'slack', '8f742231b10e8888abcd99yyyzzz85a5').reason, 'ok')
})

test('what the library of Standard Webhooks signs is valid, also with the names of Svix', () => {
  const secret = `whsec_${Buffer.from('a secret of the endpoint').toString('base64')}`
  const signature = new Webhook(secret).sign('msg_1', ARRIVED, BODY)
  for (const prefix of ['webhook', 'svix']) {
    const headers = {
      [`${prefix}-id`]: 'msg_1',
      [`${prefix}-timestamp`]: seconds(),
      [`${prefix}-signature`]: `v1,AAAA ${signature}`,
    }
    const exchange = recorded(headers, BODY, ARRIVED)
    const { valid, signedAt } = verifySignature(exchange, 'standard-webhooks', secret)
    assert.deepEqual([valid, signedAt], [true, ARRIVED.toISOString()])
    assert.equal(verifySignature(exchange, 'standard-webhooks', 'whsec_AAAA').reason, 'mismatch')
    assert.equal(verifySignature(exchange, 'standard-webhooks', '').reason, 'invalid_secret')
  }
})

test('a signature of Stripe is valid with one of several secrets, and says why it is not', () => {
  const secret = 'whsec_stripe'
  const sign = (time: string, body = BODY) =>
    `t=${time},v1=${'0'.repeat(64)},v1=${hmac(secret, `${time}.${body}`)},v0=x`
  const check = (header: string | undefined, body = BODY, given = secret) =>
    verifySignature(
      recorded(header === undefined ? {} : { 'Stripe-Signature': header }, body, ARRIVED),
      'stripe',
      given,
    )
  assert.equal(check(sign(seconds())).reason, 'ok')
  assert.equal(check(sign(seconds(-299))).reason, 'ok')
  const old = check(sign(seconds(-301)))
  assert.equal(old.reason, 'too_old')
  assert.match(old.message, /arrived 301 seconds after it was signed/)
  assert.equal(check(sign(seconds(301))).reason, 'in_future')
  assert.equal(check(sign(seconds()), `${BODY} `).reason, 'mismatch')
  assert.equal(check(sign(seconds()), BODY, 'whsec_other').reason, 'mismatch')
  assert.equal(check(undefined).reason, 'missing_header')
  assert.equal(check('t=soon,v1=00').reason, 'malformed_header')
  assert.equal(check(`t=${seconds()}`).reason, 'malformed_header')
})

test('a signature that providers would not accept does not hold, although it begins with the right bytes', () => {
  const mac = hmac('s', BODY)
  const others = [`${mac}zz garbage`, mac.toUpperCase(), `${mac} `, mac.slice(0, 62), ` ${mac}`, `${mac}00`]
  for (const value of others) {
    const github = recorded({ 'X-Hub-Signature-256': `sha256=${value}` }, BODY)
    assert.equal(verifySignature(github, 'github', 's').reason, 'malformed_header', value)
  }
  const secret = Buffer.from('a secret of the endpoint')
  const key = `whsec_${secret.toString('base64')}`
  const signed = createHmac('sha256', secret).update(`msg_1.${seconds()}.${BODY}`).digest('base64')
  const check = (signature: string, given = key) =>
    verifySignature(
      recorded(
        { 'webhook-id': 'msg_1', 'webhook-timestamp': seconds(), 'webhook-signature': `v1,${signature}` },
        BODY,
        ARRIVED,
      ),
      'standard-webhooks',
      given,
    ).reason
  assert.equal(check(signed), 'ok')
  for (const value of [signed.replace('=', ''), `${signed}garbage`, `-${signed}`, signed.slice(4)])
    assert.equal(check(value), 'malformed_header', value)
  assert.equal(check(signed, `${key}!`), 'invalid_secret')
})

test('a body that was not recorded as a whole is not verified', () => {
  const exchange = recorded({ 'x-hub-signature-256': `sha256=${hmac('s', BODY)}` }, BODY)
  exchange.request.body.isComplete = false
  const result = verifySignature(exchange, 'github' satisfies SignatureScheme, 's')
  assert.deepEqual([result.valid, result.reason], [false, 'body_cut'])
})
