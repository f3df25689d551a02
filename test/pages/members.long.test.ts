// The members page: invitations, role changes, and what the last owner cannot do.
import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import { addMember, serveWithOwner } from '../support/accounts/users.ts'
import { test } from '../support/browser.ts'
import { button, checkPage, toast, visit } from './support/harness.ts'

const roleSelect = (page: Page, name: string) => page.getByRole('combobox', { name: `Role of ${name}` })

test('the last owner can neither leave nor lower the own role, and sees why', async (t) => {
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  await addMember(server, 'Bob', 'admin')
  const page = await visit(t, server, ann, '/w/acme/members')
  const ownRole = roleSelect(page, 'Ann')
  const leave = button(page, 'Leave workspace')
  await ownRole.waitFor()
  assert.ok(await ownRole.isDisabled())
  assert.ok(await leave.isDisabled())
  await page.getByText('Make another member an owner first').waitFor()
  await page.getByText('You are the only owner').waitFor()
  await checkPage(page, 'members-last-owner', '1280-light')

  await roleSelect(page, 'Bob').click()
  await page.getByRole('option', { name: 'Owner' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Make owner' }).click()
  await toast(page, 'Role of Bob changed to owner.').waitFor()
  assert.ok(await ownRole.isEnabled())

  await leave.click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('You will lose access to Acme').waitFor()
  await dialog.getByRole('button', { name: 'Leave workspace' }).click()
  await toast(page, 'You left Acme.').waitFor()
  await page.getByRole('heading', { name: 'You are not a member of any workspace' }).waitFor()
})

test('inviting, revoking an invitation, changing a role and removing a member are confirmed', async (t) => {
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  await addMember(server, 'Bob', 'member')
  const page = await visit(t, server, ann, '/w/acme/members')
  const dialog = page.getByRole('dialog')

  await button(page, 'Invite').click()
  await dialog.getByLabel('Email').fill('eve@example.com')
  await checkPage(page, 'members-invite', '1280-light')
  await dialog.getByRole('button', { name: 'Invite' }).click()
  await page.getByTestId('invitation-link').waitFor()
  await dialog.getByText('The link works on this machine only').waitFor()
  await checkPage(page, 'members-invited-local', '1280-light')
  await checkPage(page, 'members-invited', '1280-light')
  await dialog.getByRole('button', { name: 'Done' }).click()
  await toast(page, 'eve@example.com invited.').waitFor()

  await button(page, 'Revoke the invitation of eve@example.com').click()
  await dialog.getByRole('button', { name: 'Revoke invitation' }).click()
  await toast(page, 'Invitation of eve@example.com revoked.').waitFor()

  await roleSelect(page, 'Bob').click()
  await page.getByRole('option', { name: 'Admin' }).click()
  await toast(page, 'Role of Bob changed to admin.').waitFor()

  await button(page, 'Remove Bob').click()
  await dialog.getByRole('button', { name: 'Remove' }).click()
  await toast(page, 'Bob removed.').waitFor()
  await checkPage(page, 'members-toast', '1280-light')
})
