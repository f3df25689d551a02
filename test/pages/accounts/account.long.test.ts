// The account page: its confirmations, and the dialog that turns on two-factor authentication.
import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import { generateCode } from '../../support/accounts/authenticator.ts'
import {
  openBrowser as openApiClient,
  PASSWORD,
  serveWithOwner,
  signIn,
} from '../../support/accounts/users.ts'
import { test } from '../../support/browser.ts'
import { button, checkPage, DESKTOP, field, toast, visit } from '../support/harness.ts'

async function startTwoFactorSetup(page: Page): Promise<void> {
  await button(page, 'Set up').click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await dialog.getByRole('button', { name: 'Continue' }).click()
  await dialog.getByRole('img', { name: /QR code/ }).waitFor()
}

test('changes of the account are confirmed, and other sessions can be signed out', async (t) => {
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  await signIn(openApiClient(server.url), ann.email)
  const page = await visit(t, server, ann, '/account')

  await button(page, /^Sign out .* at 127\.0\.0\.1$/).click()
  await toast(page, 'Session signed out.').waitFor()

  await field(page, 'Name').fill('Ann Example')
  await button(page, 'Save').click()
  await toast(page, 'Name saved.').waitFor()

  await field(page, 'Current password').fill(PASSWORD)
  await field(page, 'New password').fill('another good password')
  await button(page, 'Change password').click()
  await toast(page, 'Password changed.').waitFor()
  await button(page, 'Dismiss').click()
  await button(page, 'Dismiss').waitFor({ state: 'detached' })
})

test('two-factor authentication is turned on in a dialog that fits the screen or scrolls, and off again', async (t) => {
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  const page = await visit(t, server, ann, '/account')
  await page.getByText('Two-factor authentication: off').waitFor()
  await startTwoFactorSetup(page)
  const dialog = page.getByRole('dialog')
  const turnOn = dialog.getByRole('button', { name: 'Turn on' })
  const overflow = () =>
    dialog.evaluate(
      (element: { scrollHeight: number; clientHeight: number }) =>
        element.scrollHeight - element.clientHeight,
    )
  assert.ok((await overflow()) <= 0, 'the dialog scrolls at a height of 800 px')
  assert.ok(await turnOn.isVisible())
  const box = await turnOn.boundingBox()
  assert.ok(box && box.y + box.height <= DESKTOP.height, 'the button is below the screen')
  await checkPage(page, 'account-two-factor', '1280-light')
  await dialog.getByLabel('Code', { exact: true }).fill('000000')
  await turnOn.click()
  await dialog.getByText('Incorrect code. Wait for the next code and enter that.').waitFor()
  const afterError = await turnOn.boundingBox()
  assert.ok(afterError && afterError.y + afterError.height <= DESKTOP.height, 'the error hides the button')

  await page.setViewportSize({ width: 360, height: 640 })
  await checkPage(page, 'account-two-factor', '360-light')
  assert.ok((await overflow()) > 0, 'the whole dialog can be scrolled to')
  await turnOn.scrollIntoViewIfNeeded()
  const scrolled = await turnOn.boundingBox()
  assert.ok(scrolled && scrolled.y >= 0 && scrolled.y + scrolled.height <= 640)

  const secret = ((await dialog.locator('pre').first().textContent()) ?? '').replaceAll(' ', '')
  await dialog.getByLabel('Code', { exact: true }).fill(generateCode(secret))
  await turnOn.click()
  await toast(page, 'Two-factor authentication is on.').waitFor()
  await page.getByText('Two-factor authentication: on').waitFor()

  await button(page, 'Turn off').click()
  await dialog.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await dialog.getByRole('button', { name: 'Turn off' }).click()
  await toast(page, 'Two-factor authentication is off.').waitFor()
})
