// swipr in a Swift program: `try Swipr.start()`, and ask its socket. A preloaded program needs none of this.

import CSwipr

/// The sampling profiler in this process.
public enum Swipr {
    /// What the profiler could not do, in its own words.
    public struct Failure: Error, CustomStringConvertible {
        /// A status of `swipr.h`, such as `SWIPR_CANNOT_LISTEN`.
        public let status: Int32
        public let description: String
    }

    /// The version of the library, "MAJOR.MINOR.PATCH".
    public static var version: String {
        String(cString: swipr_version())
    }

    /// Where the profiler listens; `nil` if it does not run.
    public static var socket: String? {
        let path = text { swipr_socket_path($0, $1) }
        return path.isEmpty ? nil : path
    }

    /// Starts the profiler and waits until it listens. Where it runs already, because it was preloaded or started before,
    /// nothing happens.
    ///
    /// - Parameter socket: a path, which may contain `{PID}`, `{UUID}`, `{HOSTNAME}` and `{COMM}`, or a URL. `nil`: as the environment
    ///   says, or the default place.
    /// - Returns: where it listens.
    @discardableResult
    public static func start(socket: String? = nil) throws -> String {
        let status: swipr_status
        if let socket = socket {
            status = socket.withCString { path -> swipr_status in
                var options = swipr_options(size: MemoryLayout<swipr_options>.size, socket: path)
                return swipr_start(&options)
            }
        } else {
            status = swipr_start(nil)
        }
        if status != SWIPR_ALREADY_RUNNING {
            try check(status)
        }
        return self.socket ?? ""
    }

    /// Ends all recordings and removes the socket.
    public static func stop() throws {
        try check(swipr_stop())
    }

    /// Takes samples of every thread into a file, and waits until it is complete.
    public static func record(
        to file: String, format: String = "folded", samples: UInt64, intervalMicroseconds: UInt64 = 10_000
    ) throws {
        try check(swipr_record_to_file(file, format, samples, intervalMicroseconds))
    }

    /// Records every thread into a file for as long as `body` takes.
    public static func recording<Result>(
        to file: String, format: String = "folded", intervalMicroseconds: UInt64 = 10_000,
        _ body: () throws -> Result
    ) throws -> Result {
        var number: UInt64 = 0
        try check(swipr_recording_begin(file, format, intervalMicroseconds, &number))
        let result: Result
        do {
            result = try body()
        } catch {
            _ = swipr_recording_end(number)
            throw error
        }
        try check(swipr_recording_end(number))
        return result
    }

    private static func check(_ status: swipr_status) throws {
        guard status == SWIPR_OK else {
            throw Failure(status: status, description: text { swipr_last_error($0, $1) })
        }
    }

    /// A text that is copied into a buffer, whose whole length the function answers.
    private static func text(_ copy: (UnsafeMutablePointer<CChar>, Int) -> Int) -> String {
        var buffer = [CChar](repeating: 0, count: 4097)
        return buffer.withUnsafeMutableBufferPointer { buffer in
            guard let start = buffer.baseAddress, copy(start, buffer.count) > 0 else { return "" }
            return String(cString: start)
        }
    }
}
