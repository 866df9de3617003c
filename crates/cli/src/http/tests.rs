use super::*;

/// A server's whole answer, and the request that it got.
struct Said(io::Cursor<Vec<u8>>, Vec<u8>);

impl Read for Said {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // One byte at a time: what comes in pieces is put together.
        let most = buffer.len().min(1);
        self.0.read(&mut buffer[..most])
    }
}

impl Write for Said {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const GET: Request<'_> = Request { method: "GET", target: "/", headers: &[], body: b"" };

fn answer(text: &str) -> io::Result<Answer<Said>> {
    ask(Said(io::Cursor::new(text.into()), Vec::new()), &GET)
}

#[test]
fn a_chunked_answer_is_put_together_and_its_trailer_is_a_field() {
    let text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n3;x=y\r\n\r\n!\r\n0\r\n\
                X-Swipr-Stats: ticks=3\r\n\r\n";
    let mut answer = answer(text).expect("an answer");
    assert_eq!(answer.field("x-swipr-stats"), None);
    assert_eq!(answer.text().expect("a body"), "hello\r\n!");
    assert_eq!((answer.status, answer.field("x-swipr-stats")), (200, Some("ticks=3")));
}

#[test]
fn a_body_ends_where_its_length_says_or_where_the_connection_ends() {
    let with_length = "HTTP/1.1 400 No\r\ncontent-length: 2\r\n\r\nabc";
    assert_eq!(answer(with_length).and_then(|mut answer| answer.text()).expect("a body"), "ab");
    let until_closed = "HTTP/1.0 200 OK\r\n\r\nabc";
    assert_eq!(answer(until_closed).and_then(|mut answer| answer.text()).expect("a body"), "abc");
    let nothing = "HTTP/1.1 204 No Content\r\n\r\n";
    assert_eq!(answer(nothing).and_then(|mut answer| answer.text()).expect("a body"), "");
}

#[test]
fn an_answer_that_is_cut_off_or_is_no_http_is_an_error() {
    for text in [
        "",
        "SSH-2.0-x\r\n\r\n",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nhello\r\n",
    ] {
        assert!(answer(text).and_then(|mut answer| answer.text()).is_err(), "{text:?}");
    }
}

#[test]
fn a_request_has_a_host_a_length_and_no_second_request() {
    let mut said = Said(io::Cursor::new(b"HTTP/1.1 204 x\r\n\r\n".to_vec()), Vec::new());
    let request = Request { method: "POST", target: "/x?y=1", headers: &[("A", "b")], body: b"body" };
    // `ask` takes the connection; what it wrote is seen through a reference.
    struct Borrowed<'a>(&'a mut Said);
    impl Read for Borrowed<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read(buffer)
        }
    }
    impl Write for Borrowed<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    ask(Borrowed(&mut said), &request).expect("an answer");
    let wanted = "POST /x?y=1 HTTP/1.1\r\nHost: localhost\r\nA: b\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody";
    assert_eq!(String::from_utf8_lossy(&said.1), wanted);
}
