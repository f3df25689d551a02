<?php
session_start();
if ($_SERVER['REQUEST_URI'] === '/redirect') {
    header('Location: /');
} elseif ($_SERVER['REQUEST_URI'] === '/upload') {
    echo hash_file('sha256', $_FILES['file']['tmp_name']);
} elseif ($_SERVER['REQUEST_METHOD'] === 'GET') {
    $_SESSION['token'] ??= bin2hex(random_bytes(8));
    echo '<form method="post"><input type="hidden" name="token" value="' . $_SESSION['token'] . '">'
        . '<input name="name"><button>Send</button></form>';
} elseif ($_POST['token'] === $_SESSION['token']) {
    echo 'Hello ' . htmlspecialchars($_POST['name']);
} else {
    http_response_code(403);
}
