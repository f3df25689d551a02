// The not-found page without a session.
import { Button, Text } from '@mantine/core'
import { Link } from 'wouter'
import { AuthLayout } from './auth-layout.tsx'

export function PublicNotFoundPage() {
  return (
    <AuthLayout title="Page not found">
      <Text size="sm">There is no page at this URL. Check it for typos, or sign in.</Text>
      <Button component={Link} href="/">
        Go to overview
      </Button>
    </AuthLayout>
  )
}
