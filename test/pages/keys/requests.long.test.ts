// A member of variant B requests an API key, an admin approves it, and the member creates it.
import assert from 'node:assert/strict'
import { addMember } from '../../support/accounts/users.ts'
import { serve } from '../../support/api/server.ts'
import { openBrowser, test } from '../../support/browser.ts'
import { button, checkEveryView, DESKTOP, field, openPage, signInAs } from '../support/harness.ts'

test('a member requests a key, an admin approves it, and the member creates it', async (t) => {
  const browser = await openBrowser(t)
  const server = await serve(t, { engine: 'sqlite', env: { ADIT_API_VARIANT: 'B' } })
  const open = async (name: string, role: 'member' | 'admin') => {
    const context = await browser.newContext({ viewport: DESKTOP })
    await signInAs(context, server.url, await addMember(server, name, role))
    return openPage(t, context)
  }
  const [mia, adam] = [await open('Mia', 'member'), await open('Adam', 'admin')]

  await mia.page.goto(`${server.url}/w/acme/keys`)
  await mia.page.getByText(/Admins and owners of this workspace create API keys/).waitFor()
  await button(mia.page, 'Request key').click()
  await mia.page.getByRole('dialog').getByLabel('Label').fill('mias-laptop')
  await mia.page.getByRole('dialog').getByRole('button', { name: 'Request key' }).click()
  await mia.page.getByText('Waiting', { exact: true }).waitFor()
  await checkEveryView(mia.page, 'keys-member-requested')

  await adam.page.goto(`${server.url}/w/acme`)
  await adam.page.getByText(/Mia requests an API key \(mias-laptop\)/).waitFor()
  await adam.page.getByRole('link', { name: 'Approve or decline it' }).click()
  await button(adam.page, 'Approve mias-laptop of Mia').waitFor()
  await checkEveryView(adam.page, 'keys-admin-request')
  await button(adam.page, 'Approve mias-laptop of Mia').click()

  await button(mia.page, 'Create key').click()
  await mia.page.getByTestId('raw-key').waitFor()
  await button(mia.page, 'Done').click()
  await mia.page.locator('main h1:focus').waitFor()
  await mia.page.getByText('Your personal key').waitFor()
  await mia.page.getByText('Key created', { exact: true }).waitFor()
  assert.equal(await button(mia.page, /^Revoke/).count(), 0, 'members do not revoke')
  await field(mia.page, 'Only my keys').check()
  await mia.page.getByText('first', { exact: true }).waitFor({ state: 'detached' })
  await checkEveryView(mia.page, 'keys-member-own')
})
